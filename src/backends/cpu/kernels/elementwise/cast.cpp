// Casts between f32, bf16 and f16, each way by way of f32 in registers.
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/elementwise/cast.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/elementwise/cast.h"
#include "backends/cpu/kernels/operands.h"
#include "backends/cpu/kernels/stored-inl.h"
#include "backends/cpu/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace {

template <class From, class To>
void cast_run(const void* from, void* to, int64_t n) {
  const auto* x = static_cast<const From*>(from);
  auto* y = static_cast<To*>(to);
  vectors::for_vectors(
      n, [&](int64_t i, auto part) HWY_ATTR { stored::store(stored::load(x + i, part), y + i, part); });
}

}  // namespace

// Non-template names for the dispatch table.
void cast_f32_bf16(const void* x, void* y, int64_t n) { cast_run<float, stored::Bf16>(x, y, n); }
void cast_f32_f16(const void* x, void* y, int64_t n) { cast_run<float, stored::F16>(x, y, n); }
void cast_bf16_f32(const void* x, void* y, int64_t n) { cast_run<stored::Bf16, float>(x, y, n); }
void cast_bf16_f16(const void* x, void* y, int64_t n) { cast_run<stored::Bf16, stored::F16>(x, y, n); }
void cast_f16_f32(const void* x, void* y, int64_t n) { cast_run<stored::F16, float>(x, y, n); }
void cast_f16_bf16(const void* x, void* y, int64_t n) { cast_run<stored::F16, stored::Bf16>(x, y, n); }

}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {
namespace {

HWY_EXPORT(cast_f32_bf16);
HWY_EXPORT(cast_f32_f16);
HWY_EXPORT(cast_bf16_f32);
HWY_EXPORT(cast_bf16_f16);
HWY_EXPORT(cast_f16_f32);
HWY_EXPORT(cast_f16_bf16);

using CastRun = void (*)(const void* from, void* to, int64_t elements);

/// Bytes as they come with a batch.
void cast_u8_f32(const void* from, void* to, int64_t n) {
  const auto* x = static_cast<const uint8_t*>(from);
  std::copy_n(x, n, static_cast<float*>(to));
}

/// Null where nothing changes.
CastRun cast_of(ir::DType from, ir::DType to) {
  using enum ir::DType;
  if (from == to) return nullptr;
  if (from == kU8) return cast_u8_f32;
  if (from == kF32)
    return to == kBf16 ? HWY_DYNAMIC_DISPATCH(cast_f32_bf16) : HWY_DYNAMIC_DISPATCH(cast_f32_f16);
  if (from == kBf16)
    return to == kF32 ? HWY_DYNAMIC_DISPATCH(cast_bf16_f32) : HWY_DYNAMIC_DISPATCH(cast_bf16_f16);
  return to == kF32 ? HWY_DYNAMIC_DISPATCH(cast_f16_f32) : HWY_DYNAMIC_DISPATCH(cast_f16_bf16);
}

}  // namespace

void cast(const TensorRef& from, const TensorRef& to, ThreadPool& pool) {
  PLIMSOLL_CHECK((ir::is_computable(from.type.dtype) && ir::is_computable(to.type.dtype)) ||
                     (from.type.dtype == ir::DType::kU8 && to.type.dtype == ir::DType::kF32),
                 "cast of f32, bf16 and f16, and of u8 to f32");
  const int64_t from_bytes = ir::bits(from.type.dtype) / 8, to_bytes = ir::bits(to.type.dtype) / 8;
  const CastRun run = cast_of(from.type.dtype, to.type.dtype);
  const Walk<2> walk({&from, &to});
  for_blocks(pool, walk.total(), kBlockElements, [&](int64_t begin, int64_t end) {
    walk.for_runs(begin, end, [&](const auto& at, int64_t n) {
      const std::byte* x = from.data + at[0] * from_bytes;
      std::byte* y = to.data + at[1] * to_bytes;
      if (run != nullptr)
        run(x, y, n);
      else if (x != y)
        std::memcpy(y, x, static_cast<size_t>(n * to_bytes));
    });
  });
}

void widen(const void* from, ir::DType dtype, float* to, int64_t n) {
  cast_of(dtype, ir::DType::kF32)(from, to, n);
}
void round_to(const float* from, void* to, ir::DType dtype, int64_t n) {
  cast_of(ir::DType::kF32, dtype)(from, to, n);
}
void as_f32(const TensorRef& from, float* to) {
  if (from.type.dtype == ir::DType::kF32)
    std::copy_n(from.as<const float>(), from.num_elements(), to);
  else
    widen(from.data, from.type.dtype, to, from.num_elements());
}

namespace {
void cast_kernel(const KernelCall& call, ThreadPool& pool) { cast(call.inputs[0], call.outputs[0], pool); }
}  // namespace

std::span<const Kernel> cast_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "cast", .run = cast_kernel, .strided_inputs = 0b1, .stored_dtypes = true}};
  return kernels;
}

}  // namespace plimsoll::cpu
#endif
