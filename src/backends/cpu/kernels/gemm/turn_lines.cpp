// As many lines at a time as a vector has lanes, four numbers of each.
#include "backends/cpu/kernels/gemm/turn_lines.h"

#include "backends/cpu/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/gemm/turn_lines.cpp"
#include "hwy/foreach_target.h"
// Highway's order: after foreach_target.
#include "backends/cpu/kernels/gemm/gemm_simd-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu {
namespace HWY_NAMESPACE {

void turn(const float* lines, int64_t count, int64_t length, float* to, int64_t stride) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const float* const from = lines + i * length;
    int64_t c = 0;
    for (; c + 4 <= length; c += 4)
      transpose4<kLanes>(SpacedRows{from + c, length}, to + c * stride + i, stride);
    for (; c < length; ++c)
      for (int64_t k = 0; k < kLanes; ++k) to[c * stride + i + k] = from[k * length + c];
  }
  for (; i < count; ++i)
    for (int64_t c = 0; c < length; ++c) to[c * stride + i] = lines[i * length + c];
}

}  // namespace HWY_NAMESPACE
}  // namespace plimsoll::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {

HWY_EXPORT(turn);

void turn_lines(const float* lines, int64_t count, int64_t length, float* to, int64_t stride) {
  HWY_DYNAMIC_DISPATCH(turn)(lines, count, length, to, stride);
}

}  // namespace plimsoll::cpu
#endif
