// Packing and multiplying, after Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication"
// (TOMS 2008). Within a tile each panel of A meets every panel of B while it lies in the first-level cache:
//
//            j0 .. j1  (packed B of the tile: second-level cache)
//          +----+----+----+
//   kRows  | A panel stays|, B panels pass by            for each granule of k:
//          +----+----+----+                                for each panel of A:
//          |              |                                  for each panel of B:  micro-kernel
//     i1   +--------------+
#include "backends/cpu/kernels/gemm_tile.h"

#include <algorithm>

#include "backends/cpu/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/gemm_tile.cpp"
#include "hwy/foreach_target.h"
// Highway's order: after foreach_target.
#include "backends/cpu/kernels/gemm_micro-inl.h"
#include "backends/cpu/kernels/gemm_pack-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu {
namespace HWY_NAMESPACE {

HWY_INLINE Granule granule_at(const GemmBlock& k, int64_t index) {
  return Granules(k.args->k, k.args->k_segment)[index];
}
HWY_INLINE int64_t first_k(const GemmBlock& k) { return granule_at(k, k.first_granule).begin; }

template <typename P>
void pack_strip(const GemmBlock& k, const GemmStrip& t, const Lines& x, int64_t offset, int64_t padded,
                float* packed) {
  for (int64_t index = t.first_granule; index < t.end_granule; ++index) {
    const Granule s = granule_at(k, index);
    const int64_t kc = s.end - s.begin;
    P::pack({x.data + s.begin * x.k_stride, x.k_stride, x.line_stride}, std::min(kc, t.p0),
            std::min(kc, t.p1), kc, t.end - t.begin, packed + (s.begin - first_k(k)) * padded + offset * kc);
  }
}

void pack_a_strip(const GemmBlock& k, const GemmStrip& t) {
  const ConstMatrix& a = k.args->a;
  const Lines lines{a.data + t.begin * a.row_stride, a.col_stride, a.row_stride};
  pack_strip<PackerOfA>(k, t, lines, t.begin - k.m0, k.padded_rows, k.a);
}

void pack_b_strip(const GemmBlock& k, const GemmStrip& t) {
  const ConstMatrix& b = k.args->b;
  const Lines lines{b.data + t.begin * b.col_stride, b.row_stride, b.col_stride};
  pack_strip<PackerOfB>(k, t, lines, t.begin - k.n0, k.padded_columns, k.b);
}

void multiply_granule(const GemmBlock& k, const Granule& s, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
  const GemmArgs& g = *k.args;
  const int64_t kc = s.end - s.begin, offset = s.begin - first_k(k);
  const float* bias = g.bias && s.end == g.k ? g.bias : nullptr;
  MicroArgs m{};
  m.kc = kc;
  m.c_stride = g.c_row_stride;
  m.add = g.accumulate || s.begin > 0;
  for (int64_t i = i0; i < i1; i += kRows) {
    const auto rows = static_cast<size_t>(std::min<int64_t>(kRows, i1 - i));
    m.a = k.a + offset * k.padded_rows + (i - k.m0) * kc;
    m.b = k.b + offset * k.padded_columns + (j0 - k.n0) * kc;
    for (int64_t j = j0; j < j1; j += kColumns, m.b += kc * kColumns) {
      m.columns = std::min<int64_t>(kColumns, j1 - j);
      m.c = g.c + i * g.c_row_stride + j;
      m.bias = bias ? bias + j : nullptr;
      kMicros[static_cast<size_t>((m.columns - 1) / kLanes)][rows - 1](m);
    }
  }
}

void multiply_tile(const GemmBlock& k, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
  for (int64_t index = k.first_granule; index < k.end_granule; ++index)
    multiply_granule(k, granule_at(k, index), i0, i1, j0, j1);
}

}  // namespace HWY_NAMESPACE
}  // namespace plimsoll::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {

HWY_EXPORT(pack_a_strip);
HWY_EXPORT(pack_b_strip);
HWY_EXPORT(multiply_tile);

void gemm_pack_a(const GemmBlock& block, const GemmStrip& strip) {
  HWY_DYNAMIC_DISPATCH(pack_a_strip)(block, strip);
}

void gemm_pack_b(const GemmBlock& block, const GemmStrip& strip) {
  HWY_DYNAMIC_DISPATCH(pack_b_strip)(block, strip);
}

void gemm_multiply(const GemmBlock& block, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
  HWY_DYNAMIC_DISPATCH(multiply_tile)(block, i0, i1, j0, j1);
}

}  // namespace plimsoll::cpu
#endif
