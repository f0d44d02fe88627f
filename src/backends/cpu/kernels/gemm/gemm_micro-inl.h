// The micro-kernel: kRows x kColumns of C in registers over one granule of k.
#include "backends/cpu/kernels/gemm/gemm_ahead.h"
#include "backends/cpu/kernels/gemm/gemm_simd-inl.h"

#if defined(PLIMSOLL_GEMM_MICRO_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_GEMM_MICRO_INL_H_
#undef PLIMSOLL_GEMM_MICRO_INL_H_
#else
#define PLIMSOLL_GEMM_MICRO_INL_H_
#endif

#include <array>
#include <cstddef>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu {
namespace HWY_NAMESPACE {

// One call of a micro-kernel on packed panels.
struct MicroArgs {
  const float* a;
  const float* b;
  float* c;
  int64_t c_stride;
  int64_t kc;
  int64_t columns;        // of C, <= the panel's width
  const float* bias;      // of these columns, or null
  bool add;               // to C, or store
  GemmAhead::Part ahead;  // a line for every second k
};

template <int kR, int kV>
struct Sums {
  Vec at[kR][kV];

  HWY_INLINE void step(const float* a, const float* b) {
    Vec bv[kV];
#pragma GCC unroll 4
    for (int v = 0; v < kV; ++v) bv[v] = load(b + v * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r) {
      const Vec av = broadcast(a + r);
#pragma GCC unroll 4
      for (int v = 0; v < kV; ++v) multiply_add(av, bv[v], at[r][v]);
    }
  }
};

template <int kR, int kV>
HWY_INLINE void write_full(const MicroArgs& m, Sums<kR, kV>& sums) {
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kV; ++v) {
      float* c = m.c + r * m.c_stride + v * kLanes;
      Vec x = sums.at[r][v];
      if (m.add) x = add(load(c), x);
      if (m.bias) x = add(x, load(m.bias + v * kLanes));
      store(x, c);
    }
  }
}

// The right edge of C: nothing beyond `columns` is read or written.
template <int kR, int kV>
HWY_INLINE void write_edge(const MicroArgs& m, Sums<kR, kV>& sums) {
  constexpr int kLast = kV - 1;
  const int64_t last = m.columns - kLast * kLanes;
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kV; ++v) {
      float* c = m.c + r * m.c_stride + v * kLanes;
      const int64_t count = v < kLast ? kLanes : last;
      Vec x = sums.at[r][v];
      if (m.add) x = add(load_first(c, count), x);
      if (m.bias) x = add(x, load_first(m.bias + v * kLanes, count));
      store_first(x, c, count);
    }
  }
}

template <int kR, int kV>
void micro(const MicroArgs& m) {
  constexpr int kW = kV * kLanes;
  const float* a = m.a;
  const float* b = m.b;
  Sums<kR, kV> sums;
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kV; ++v) {
      __builtin_prefetch(m.c + r * m.c_stride + v * kLanes);
      sums.at[r][v] = zero();
    }
  }
  int64_t left = m.kc;
  const std::byte* ahead = m.ahead.data;
  for (; left >= 2; left -= 2, a += 2 * kRows, b += 2 * kW, ahead += m.ahead.step) {
    __builtin_prefetch(ahead, 0, 2);
    sums.step(a, b);
    sums.step(a + kRows, b + kW);
  }
  if (left > 0) sums.step(a, b);
  m.columns == kW ? write_full(m, sums) : write_edge(m, sums);
}

using Micro = void (*)(const MicroArgs&);

template <int kV, size_t... kR>
constexpr std::array<Micro, sizeof...(kR)> micros(std::index_sequence<kR...>) {
  return {micro<static_cast<int>(kR) + 1, kV>...};
}
template <size_t... kV>
constexpr std::array<std::array<Micro, kRows>, sizeof...(kV)> all_micros(std::index_sequence<kV...>) {
  return {micros<static_cast<int>(kV) + 1>(std::make_index_sequence<kRows>())...};
}

// By vectors - 1 and rows - 1.
inline constexpr auto kMicros = all_micros(std::make_index_sequence<kVectors>());

}  // namespace HWY_NAMESPACE
}  // namespace plimsoll::cpu
HWY_AFTER_NAMESPACE();

#endif
