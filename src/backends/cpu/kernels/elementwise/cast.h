// Values in another dtype.
#pragma once

#include "backends/cpu/kernel.h"

namespace plimsoll::cpu {

/// The elements of `from`, dense or a view as kernels take them, into the dense `to` of the same shape: f32,
/// bf16 and f16 each way, to nearest even. They may share their memory where both have two or both four
/// bytes.
void cast(const TensorRef& from, const TensorRef& to, ThreadPool& pool);

/// `n` elements of bf16 or f16 as f32, and f32 rounded to one of these.
void widen(const void* from, ir::DType dtype, float* to, int64_t n);
void round_to(const float* from, void* to, ir::DType dtype, int64_t n);
/// All elements of a dense operand as f32.
void as_f32(const TensorRef& from, float* to);

}  // namespace plimsoll::cpu
