// Schemes of FP8 and FP4 in terms of the card's kernels.
#pragma once

#include "backends/cuda/kernels/gemm/scaled_codes_args.h"
#include "numerics/blocks.h"

namespace plimsoll::cuda {

/// The scheme is one of quantize_operand.
CodeScheme code_scheme(numerics::Scheme scheme);

}  // namespace plimsoll::cuda
