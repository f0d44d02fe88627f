// Packing and multiplying, after Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication"
// (TOMS 2008). Within a tile each panel of A meets every panel of B while it lies in the first-level cache:
//
//            j0 .. j1  (packed B of the tile: second-level cache)
//          +----+----+----+
//   kRows  | A panel stays|, B panels pass by            for each granule of k:
//          +----+----+----+                                for each panel of A:
//          |              |                                  for each panel of B:  micro-kernel
//     i1   +--------------+
#include "backends/cpu/kernels/gemm/gemm_tile.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/gemm/gemm_tile.cpp"
#include "hwy/foreach_target.h"
// Highway's order: after foreach_target.
#include "backends/cpu/kernels/gemm/gemm_micro-inl.h"
#include "backends/cpu/kernels/gemm/gemm_pack-inl.h"
#include "backends/cpu/kernels/gemm/gemm_patches-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu {
namespace HWY_NAMESPACE {

HWY_INLINE Granule granule_at(const GemmBlock& k, int64_t index) {
  return GemmGranules(k.args->k, k.args->k_segment)[index];
}
HWY_INLINE int64_t first_k(const GemmBlock& k) { return granule_at(k, k.first_granule).begin; }

template <typename P>
void pack_strip(const GemmBlock& k, const GemmStrip& t, const AnyLines& x, int64_t offset, int64_t padded,
                float* packed) {
  for (int64_t index = t.first_granule; index < t.end_granule; ++index) {
    const Granule s = granule_at(k, index);
    const int64_t kc = s.end - s.begin;
    AnyLines from = x;
    from.data = x.at(s.begin, t.begin);
    ConvertingPacker<P>::pack(from, std::min(kc, t.p0), std::min(kc, t.p1), kc, t.end - t.begin,
                              packed + (s.begin - first_k(k)) * padded + offset * kc);
  }
}

// Rows of patches, as A.
void pack_patch_rows(const GemmBlock& k, const GemmStrip& t) {
  const ConstMatrix& a = k.args->a;
  for (int64_t index = t.first_granule; index < t.end_granule; ++index) {
    const Granule s = granule_at(k, index);
    PatchPacker<PackerOfA>::along(
        {*a.patches, a.dtype, k.args->precision}, a.first_line + t.begin, t.end - t.begin, s.begin, s.end,
        k.a + (s.begin - first_k(k)) * k.padded_rows + (t.begin - k.m0) * (s.end - s.begin));
  }
}

// Columns of patches, as B.
void pack_patch_columns(const GemmBlock& k, const GemmStrip& t) {
  const ConstMatrix& b = k.args->b;
  for (int64_t index = t.first_granule; index < t.end_granule; ++index) {
    const Granule s = granule_at(k, index);
    const int64_t kc = s.end - s.begin;
    PatchPacker<PackerOfB>::across({*b.patches, b.dtype, k.args->precision}, b.first_line + t.begin,
                                   t.end - t.begin, s.begin, kc, std::min(kc, t.p0), std::min(kc, t.p1),
                                   k.b + (s.begin - first_k(k)) * k.padded_columns + (t.begin - k.n0) * kc);
  }
}

void pack_a_strip(const GemmBlock& k, const GemmStrip& t) {
  const ConstMatrix& a = k.args->a;
  if (a.patches != nullptr) return pack_patch_rows(k, t);
  const AnyLines lines{static_cast<const std::byte*>(a.data), a.col_stride, a.row_stride, a.dtype,
                       k.args->precision};
  pack_strip<PackerOfA>(k, t, lines, t.begin - k.m0, k.padded_rows, k.a);
}

void pack_b_strip(const GemmBlock& k, const GemmStrip& t) {
  const ConstMatrix& b = k.args->b;
  if (b.patches != nullptr) return pack_patch_columns(k, t);
  const AnyLines lines{static_cast<const std::byte*>(b.data), b.row_stride, b.col_stride, b.dtype,
                       k.args->precision};
  pack_strip<PackerOfB>(k, t, lines, t.begin - k.n0, k.padded_columns, k.b);
}

void multiply_granule(const GemmBlock& k, const Granule& s, int64_t i0, int64_t i1, int64_t j0, int64_t j1,
                      GemmAhead& ahead) {
  const GemmArgs& g = *k.args;
  const int64_t kc = s.end - s.begin, offset = s.begin - first_k(k);
  auto* c = static_cast<float*>(g.c);
  const float* bias = s.end == g.k ? static_cast<const float*>(g.bias) : nullptr;
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
      m.c = c + i * g.c_row_stride + j;
      m.bias = bias ? bias + j : nullptr;
      m.ahead = ahead.take(kc / 2, m.a);
      kMicros[static_cast<size_t>((m.columns - 1) / kLanes)][rows - 1](m);
    }
  }
}

void multiply_tile(const GemmBlock& k, int64_t i0, int64_t i1, int64_t j0, int64_t j1, GemmAhead ahead) {
  for (int64_t index = k.first_granule; index < k.end_granule; ++index)
    multiply_granule(k, granule_at(k, index), i0, i1, j0, j1, ahead);
}

void finish_row(const float* sums, const GemmArgs& g, void* c) {
  constexpr int64_t kPart = 64;
  alignas(64) float x[kPart], more[kPart];
  const int64_t c_size = g.c_dtype == ir::DType::kF32 ? 4 : 2,
                bias_size = g.bias_dtype == ir::DType::kF32 ? 4 : 2;
  const auto add = [&](const void* from, ir::DType dtype, int64_t count) {
    widen(from, dtype, more, count);
    for (int64_t i = 0; i < count; ++i) x[i] += more[i];
  };
  for (int64_t j = 0; j < g.n; j += kPart) {
    const int64_t here = std::min(kPart, g.n - j);
    void* to = static_cast<std::byte*>(c) + j * c_size;
    if (g.bias == nullptr && !g.plus_c) {
      narrow(sums + j, g.c_dtype, to, here);
      continue;
    }
    std::copy_n(sums + j, here, x);
    if (g.bias != nullptr) add(static_cast<const std::byte*>(g.bias) + j * bias_size, g.bias_dtype, here);
    if (g.plus_c) {  // as stored
      alignas(64) std::byte stored[kPart * sizeof(float)];
      narrow(x, g.c_dtype, stored, here);
      widen(stored, g.c_dtype, x, here);
      add(to, g.c_dtype, here);
    }
    narrow(x, g.c_dtype, to, here);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace plimsoll::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {

HWY_EXPORT(pack_a_strip);
HWY_EXPORT(pack_b_strip);
HWY_EXPORT(multiply_tile);
HWY_EXPORT(finish_row);

void gemm_pack_a(const GemmBlock& block, const GemmStrip& strip) {
  HWY_DYNAMIC_DISPATCH(pack_a_strip)(block, strip);
}

void gemm_pack_b(const GemmBlock& block, const GemmStrip& strip) {
  HWY_DYNAMIC_DISPATCH(pack_b_strip)(block, strip);
}

void gemm_multiply(const GemmBlock& block, int64_t i0, int64_t i1, int64_t j0, int64_t j1,
                   const GemmAhead& ahead) {
  HWY_DYNAMIC_DISPATCH(multiply_tile)(block, i0, i1, j0, j1, ahead);
}

void gemm_finish_row(const float* sums, const GemmArgs& args, void* c) {
  HWY_DYNAMIC_DISPATCH(finish_row)(sums, args, c);
}

}  // namespace plimsoll::cpu
#endif
