// The micro-kernel: kRows x kColumns of C in registers over one granule of k.
#include "backends/cpu/kernels/gemm_simd-inl.h"

#if defined(PLIMSOLL_GEMM_MICRO_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_GEMM_MICRO_INL_H_
#undef PLIMSOLL_GEMM_MICRO_INL_H_
#else
#define PLIMSOLL_GEMM_MICRO_INL_H_
#endif

#include <array>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu {
namespace HWY_NAMESPACE {

// One call of a micro-kernel. A is read in place where its rows are contiguous (element (i, p) at
// a[i * a_stride + p]) and else from a packed panel (at a[p * kPanelRows + i]).
struct MicroArgs {
  const float* a;
  int64_t a_stride;
  const float* b;  // packed panel
  float* c;
  int64_t c_stride;
  int64_t kc;
  int64_t columns;    // of C, <= the panel's width
  const float* bias;  // of these columns, or null
  bool add;           // to C, or store
};

inline constexpr int kPanelRows = 16;

// Rows are addressed as base + {0, 1, 2} strides, so that 14 rows need 5 bases and a stride, not 14 pointers.
template <int kR>
struct RowsOfA {
  static constexpr int kBases = (kR + 2) / 3;
  const float* base[kBases];
  int64_t stride;

  HWY_INLINE explicit RowsOfA(const MicroArgs& m) : stride(m.a_stride) {
#pragma GCC unroll 8
    for (int i = 0; i < kBases; ++i) {
      base[i] = m.a + 3 * i * stride;
      asm("" : "+r"(base[i]));  // else the compiler recomputes them from one another and spills
    }
  }
  HWY_INLINE Vec get(int row, int p) const { return broadcast(base[row / 3] + (row % 3) * stride + p); }
  HWY_INLINE void advance(int p) {
#pragma GCC unroll 8
    for (int i = 0; i < kBases; ++i) base[i] += p;
  }
};

template <int kR>
struct PanelOfA {
  const float* at;
  HWY_INLINE explicit PanelOfA(const MicroArgs& m) : at(m.a) {}
  HWY_INLINE Vec get(int row, int p) const { return broadcast(at + p * kPanelRows + row); }
  HWY_INLINE void advance(int p) { at += p * kPanelRows; }
};

template <int kR, int kV>
struct Accumulators {
  Vec at[kR][kV];

  template <typename SourceOfA>
  HWY_INLINE void step(const SourceOfA& a, int p, const float* b) {
    Vec bv[kV];
#pragma GCC unroll 4
    for (int v = 0; v < kV; ++v) bv[v] = load(b + v * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r) {
      const Vec av = a.get(r, p);
#pragma GCC unroll 4
      for (int v = 0; v < kV; ++v) at[r][v] = multiply_add(av, bv[v], at[r][v]);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < kV; ++v) pin(at[r][v]);
  }
};

template <int kR, int kV>
HWY_INLINE void write_full(const MicroArgs& m, Accumulators<kR, kV>& acc) {
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kV; ++v) {
      float* c = m.c + r * m.c_stride + v * kLanes;
      Vec x = acc.at[r][v];
      if (m.add) x = add(load(c), x);
      if (m.bias) x = add(x, load(m.bias + v * kLanes));
      store(x, c);
    }
  }
}

// The right edge of C: nothing beyond `columns` is read or written.
template <int kR, int kV>
HWY_INLINE void write_edge(const MicroArgs& m, Accumulators<kR, kV>& acc) {
  constexpr int kLast = kV - 1;
  const int64_t last = m.columns - kLast * kLanes;
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kV; ++v) {
      float* c = m.c + r * m.c_stride + v * kLanes;
      const int64_t count = v < kLast ? kLanes : last;
      Vec x = acc.at[r][v];
      if (m.add) x = add(load_first(c, count), x);
      if (m.bias) x = add(x, load_first(m.bias + v * kLanes, count));
      store_first(x, c, count);
    }
  }
}

template <int kR, int kV, template <int> typename SourceOfA>
void micro(const MicroArgs& m) {
  SourceOfA<kR> a(m);
  const float* b = m.b;
  Accumulators<kR, kV> acc;
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) {
    __builtin_prefetch(m.c + r * m.c_stride, 1);
    __builtin_prefetch(m.c + r * m.c_stride + (kV - 1) * kLanes, 1);
#pragma GCC unroll 4
    for (int v = 0; v < kV; ++v) acc.at[r][v] = zero();
  }
  constexpr int kW = kV * kLanes;
  int64_t left = m.kc;
  for (; left >= 4; left -= 4) {
#pragma GCC unroll 4
    for (int p = 0; p < 4; ++p) acc.step(a, p, b + p * kW);
    a.advance(4);
    b += 4 * kW;
  }
  for (; left > 0; --left) {
    acc.step(a, 0, b);
    a.advance(1);
    b += kW;
  }
  m.columns == kW ? write_full(m, acc) : write_edge(m, acc);
}

using Micro = void (*)(const MicroArgs&);

template <int kV, template <int> typename SourceOfA, size_t... kR>
constexpr std::array<Micro, sizeof...(kR)> micros(std::index_sequence<kR...>) {
  return {micro<static_cast<int>(kR) + 1, kV, SourceOfA>...};
}

// The kernel for 1 to kRows rows, by rows - 1.
template <int kV, template <int> typename SourceOfA>
inline constexpr auto kMicros = micros<kV, SourceOfA>(std::make_index_sequence<kRows>());

}  // namespace HWY_NAMESPACE
}  // namespace plimsoll::cpu
HWY_AFTER_NAMESPACE();

#endif
