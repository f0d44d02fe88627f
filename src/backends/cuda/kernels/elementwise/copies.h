// Copies between layouts, and casts: what launchers beside those of elementwise.cpp use too.
#pragma once

#include "backends/cuda/kernels/operands.h"

namespace plimsoll::cuda {

/// The elements of `from` where `to` is, which is of that shape and element size. Errors: kInvalidArgument
/// where axes do not collapse to four.
Status copy_elements(const TensorRef& from, const TensorRef& to, const KernelCall& call, Stream& stream);
/// n elements in another floating dtype, or in the same.
Status cast_elements(const Operand& from, const Operand& to, int64_t n, Stream& stream);
/// Rows of that pitch to dense ones. `tf32`: rounded to TF32 on the way.
Status cast_to_rows(const Operand& from, int64_t stride, const Operand& to, int64_t rows, int64_t cols,
                    bool tf32, Stream& stream);

}  // namespace plimsoll::cuda
