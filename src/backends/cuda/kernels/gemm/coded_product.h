// Products of operands in FP8 and FP4 on units for their formats, by cuBLASLt.
#pragma once

#include "backends/cuda/kernels/gemm/scaled_matmul.h"

namespace plimsoll::cuda {

/// Whether cards of that compute capability (90; 0: it is not known, and then false) have such units, as
/// cuBLASLt's documents say: scales of tensors from 8.9 on, f32 scales of blocks on 9.0 alone, MXFP8 and
/// NVFP4 from 10.0 on; extents in multiples of 16 bytes. The library is asked besides, and may refuse.
bool has_coded_units(const ScaledProduct& p, int capability);

/// Scratch of multiply_codes.
int64_t coded_bytes(const ScaledProduct& p);

/// Queues the product; false, and nothing queued, where the card or its library has no algorithm for it.
/// Operands become what the units read: along k, with scales as cuBLASLt lays them. `to.factor`: of NVFP4
/// alone, as scales of tensors in FP8 go along with the operands. Async.
Result<bool> multiply_codes(const KernelCall& call, const ScaledProduct& p, const ScaledTarget& to,
                            std::byte* scratch, Stream& stream);

}  // namespace plimsoll::cuda
