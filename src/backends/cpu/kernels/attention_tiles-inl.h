// What the forward and the backward pass of attention share: register-tiled products of small matrices, packing,
// and the plan of one tile. Compiled once per target.
//
// Both passes hold queries in vector lanes. A block of kBlock queries is packed transposed, [head_dim][kBlock], and
//
//   scores^T [keys][queries] = K [keys][head_dim] . Q^T [head_dim][queries]
//   out^T [head_dim][queries] += V^T [head_dim][keys] . P^T [keys][queries]
//
// so softmax runs down the rows of a tile without a horizontal operation, keys and values are read where they lie,
// one scalar at a time, and any head_dim fits without a tail. A tile that the mask cuts is a list of rectangles,
// keys x vectors of queries, that leaves out what no query sees:
//
//      vectors of queries ->          causal diagonal, four vectors:
//   keys  | 0 | 0 | 0 | 0 |           rectangle 0 spans all vectors,
//    |    |   | 1 | 1 | 1 |           1 starts at the second, ...
//    v    |   |   | 2 | 2 |
//         |   |   |   | 3 |
#if defined(PLIMSOLL_BACKENDS_CPU_KERNELS_ATTENTION_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_BACKENDS_CPU_KERNELS_ATTENTION_TILES_INL_H_
#undef PLIMSOLL_BACKENDS_CPU_KERNELS_ATTENTION_TILES_INL_H_
#else
#define PLIMSOLL_BACKENDS_CPU_KERNELS_ATTENTION_TILES_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "backends/cpu/kernels/attention_layout.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace attention {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;
inline constexpr int kLanes = static_cast<int>(hn::MaxLanes(Tag()));
// kRows x kVectors accumulators, kVectors operands and a broadcast fit the registers: 24 + 4 + 1 of 32, 12 + 2 + 1
// of 16.
inline constexpr int kRows = 6;
inline constexpr int kVectors = kLanes >= 16 ? 4 : 2;
inline constexpr int kBlockVectors = kBlock / kLanes;

// c [MR][NV vectors] = (accumulate ? c : 0) + a [MR][depth] . b [depth][NV vectors]. Element (r, p) of a lies at
// a[r + p * a_stride] if kColumns, else at a[r * a_stride + p].
template <int MR, int NV, bool kColumns>
HWY_NOINLINE void multiply_registers(int64_t depth, const float* HWY_RESTRICT a, int64_t a_stride,
                                     const float* HWY_RESTRICT b, int64_t b_stride, float* HWY_RESTRICT c,
                                     int64_t c_stride, bool accumulate) {
  const Tag d;
  Vector sum[MR][NV];
#pragma GCC unroll 8
  for (int r = 0; r < MR; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v)
      sum[r][v] = accumulate ? hn::LoadU(d, c + r * c_stride + v * kLanes) : hn::Zero(d);
  for (int64_t p = 0; p < depth; ++p) {
    Vector row[NV];
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) row[v] = hn::LoadU(d, b + v * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < MR; ++r) {
      const Vector x = hn::Set(d, kColumns ? a[r] : a[r * a_stride]);
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) sum[r][v] = hn::MulAdd(x, row[v], sum[r][v]);
    }
    b += b_stride;
    a += kColumns ? a_stride : 1;
  }
#pragma GCC unroll 8
  for (int r = 0; r < MR; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) hn::StoreU(sum[r][v], d, c + r * c_stride + v * kLanes);
}

// Operands of `multiply`: c [rows][vectors] (+)= a [rows][depth] . b [depth][vectors].
struct Product {
  int rows = 0, vectors = 0;
  int64_t depth = 0;
  const float* a = nullptr;
  int64_t a_stride = 0;
  const float* b = nullptr;
  int64_t b_stride = 0;
  float* c = nullptr;
  int64_t c_stride = 0;
  bool accumulate = false;
};

template <int NV, bool kColumns>
HWY_INLINE void multiply_rows(const Product& p, int rows, const float* a, const float* b, float* c) {
  switch (rows) {
    case 1: return multiply_registers<1, NV, kColumns>(p.depth, a, p.a_stride, b, p.b_stride, c, p.c_stride, p.accumulate);
    case 2: return multiply_registers<2, NV, kColumns>(p.depth, a, p.a_stride, b, p.b_stride, c, p.c_stride, p.accumulate);
    case 3: return multiply_registers<3, NV, kColumns>(p.depth, a, p.a_stride, b, p.b_stride, c, p.c_stride, p.accumulate);
    case 4: return multiply_registers<4, NV, kColumns>(p.depth, a, p.a_stride, b, p.b_stride, c, p.c_stride, p.accumulate);
    case 5: return multiply_registers<5, NV, kColumns>(p.depth, a, p.a_stride, b, p.b_stride, c, p.c_stride, p.accumulate);
    default: return multiply_registers<6, NV, kColumns>(p.depth, a, p.a_stride, b, p.b_stride, c, p.c_stride, p.accumulate);
  }
}

template <bool kColumns>
HWY_INLINE void multiply(const Product& p) {
  const int panels = (p.vectors + kVectors - 1) / kVectors;
  for (int panel = 0, v = 0; panel < panels; ++panel) {
    // Even shares: 5 vectors go as 3 + 2, since a single one leaves the multipliers waiting.
    const int width = (p.vectors - v + panels - panel - 1) / (panels - panel);
    for (int r = 0; r < p.rows; r += kRows) {
      const int rows = std::min(kRows, p.rows - r);
      const float* a = p.a + (kColumns ? r : r * p.a_stride);
      const float* b = p.b + v * kLanes;
      float* c = p.c + r * p.c_stride + v * kLanes;
      switch (width) {
        case 1: multiply_rows<1, kColumns>(p, rows, a, b, c); break;
        case 2: multiply_rows<2, kColumns>(p, rows, a, b, c); break;
        case 3: multiply_rows<std::min(3, kVectors), kColumns>(p, rows, a, b, c); break;
        default: multiply_rows<kVectors, kColumns>(p, rows, a, b, c);
      }
    }
    v += width;
  }
}

#if HWY_TARGET != HWY_SCALAR
// A 4 x 4 block of `from` transposed, in registers of 128 bits.
HWY_INLINE void transpose_4x4(const float* from, int64_t from_stride, hn::Vec<hn::FixedTag<float, 4>> (&to)[4]) {
  const hn::FixedTag<float, 4> d;
  const auto r0 = hn::LoadU(d, from), r1 = hn::LoadU(d, from + from_stride);
  const auto r2 = hn::LoadU(d, from + 2 * from_stride), r3 = hn::LoadU(d, from + 3 * from_stride);
  const auto low01 = hn::InterleaveLower(d, r0, r1), low23 = hn::InterleaveLower(d, r2, r3);
  const auto high01 = hn::InterleaveUpper(d, r0, r1), high23 = hn::InterleaveUpper(d, r2, r3);
  to[0] = hn::ConcatLowerLower(d, low23, low01);
  to[1] = hn::ConcatUpperUpper(d, low23, low01);
  to[2] = hn::ConcatLowerLower(d, high23, high01);
  to[3] = hn::ConcatUpperUpper(d, high23, high01);
}
#endif

// to[c][r] = factor * from[r][c], or added to what is there.
template <bool kAdd>
HWY_INLINE void transpose(const float* from, int64_t from_stride, int64_t rows, int64_t columns, float factor, float* to,
                          int64_t to_stride) {
  int64_t whole_rows = 0, whole_columns = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<float, 4> d;
  const auto scale = hn::Set(d, factor);
  whole_rows = rows / 4 * 4, whole_columns = columns / 4 * 4;
  for (int64_t r = 0; r < whole_rows; r += 4)
    for (int64_t c = 0; c < whole_columns; c += 4) {
      hn::Vec<hn::FixedTag<float, 4>> block[4];
      transpose_4x4(from + r * from_stride + c, from_stride, block);
      for (int i = 0; i < 4; ++i) {
        float* p = to + (c + i) * to_stride + r;
        hn::StoreU(kAdd ? hn::MulAdd(block[i], scale, hn::LoadU(d, p)) : hn::Mul(block[i], scale), d, p);
      }
    }
#endif
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = r < whole_rows ? whole_columns : 0; c < columns; ++c) {
      float& p = to[c * to_stride + r];
      p = hn::GetLane(kAdd ? hn::MulAdd(hn::Set(hn::FixedTag<float, 1>(), from[r * from_stride + c]),
                                        hn::Set(hn::FixedTag<float, 1>(), factor),
                                        hn::Set(hn::FixedTag<float, 1>(), p))
                           : hn::Set(hn::FixedTag<float, 1>(), from[r * from_stride + c] * factor));
    }
}

// Rows of head_dim values, multiplied by `factor`, into `to` [head_dim][kBlock]; the lanes behind them are zero.
HWY_INLINE void pack_transposed(const float* from, int64_t from_stride, int rows, int64_t head_dim, float factor,
                                float* to) {
  if (rows < kBlock)
    for (int64_t c = 0; c < head_dim; ++c) std::fill(to + c * kBlock + rows, to + (c + 1) * kBlock, 0.0f);
  transpose<false>(from, from_stride, rows, head_dim, factor, to, kBlock);
}

// Rows of head_dim values, multiplied by `factor`, into `to` [kBlock][padded]; what lies behind them is zero.
HWY_INLINE void pack_rows(const float* from, int64_t from_stride, int rows, int64_t head_dim, int64_t padded,
                          float factor, float* to) {
  for (int r = 0; r < kBlock; ++r) {
    const int64_t n = r < rows ? head_dim : 0;
    for (int64_t c = 0; c < n; ++c) to[r * padded + c] = from[r * from_stride + c] * factor;
    std::fill(to + r * padded + n, to + (r + 1) * padded, 0.0f);
  }
}

// A rectangle of a tile: keys [key_begin, key_end) of the tile, vectors [vector_begin, vector_end) of the block.
struct Rectangle {
  int key_begin = 0, key_end = 0, vector_begin = 0, vector_end = 0;
};

// What one tile computes. Only where `masked` is set do single elements need the comparison.
struct TilePlan {
  int count = 0;
  bool masked = false;
  Rectangle rectangles[kBlock / kRows + 1];
};

// Which keys the queries of one block see: i sees j if j >= lower_key[i] and i >= the key's least query.
struct QueryBlock {
  int32_t first = 0;
  int rows = 0, vectors = 0;
  int32_t min_lower_key = 0, max_lower_key = 0;
  int32_t vector_min_lower_key[kBlockVectors];
  alignas(64) int32_t lower_key[kBlock];
};

HWY_INLINE QueryBlock make_query_block(const MaskView& mask, int64_t index) {
  QueryBlock block;
  block.first = static_cast<int32_t>(index * kBlock);
  block.rows = static_cast<int>(std::min<int64_t>(kBlock, mask.tokens - block.first));
  block.vectors = (block.rows + kLanes - 1) / kLanes;
  for (int i = 0; i < kBlock; ++i)
    block.lower_key[i] = mask.lower_key(block.first + std::min(i, block.rows - 1));
  for (int v = 0; v < kBlockVectors; ++v) {
    const int32_t* lower = block.lower_key + v * kLanes;
    block.vector_min_lower_key[v] = *std::min_element(lower, lower + kLanes);
  }
  block.min_lower_key = *std::min_element(block.lower_key, block.lower_key + block.rows);
  block.max_lower_key = *std::max_element(block.lower_key, block.lower_key + block.rows);
  return block;
}

// The rectangles of the tile of `block` and keys [key, key + num_keys), num_keys <= kBlock; none if it is hidden.
HWY_INLINE TilePlan plan_tile(const MaskView& mask, const QueryBlock& block, int32_t key, int num_keys) {
  TilePlan plan;
  const int32_t last_query = block.first + block.rows - 1, last_key = key + num_keys - 1;
  if (last_key < block.min_lower_key || (mask.causal && key > last_query)) return plan;
  int32_t max_query = mask.causal ? last_key : 0;
  if (!mask.causal && mask.doc_start) max_query = *std::max_element(mask.doc_start + key, mask.doc_start + last_key + 1);
  if (key >= block.max_lower_key && max_query <= block.first) {
    plan.count = 1;
    plan.rectangles[0] = {0, num_keys, 0, block.vectors};
    return plan;
  }
  plan.masked = true;
  for (int k = 0; k < num_keys; k += kRows) {
    const int end = std::min(k + kRows, num_keys);
    int32_t min_query = std::numeric_limits<int32_t>::max();
    for (int i = k; i < end; ++i) min_query = std::min(min_query, mask.lower_query(key + i));
    const int begin_vector = std::max(0, min_query - block.first) / kLanes;
    int end_vector = block.vectors;
    while (end_vector > begin_vector && block.vector_min_lower_key[end_vector - 1] > key + end - 1) --end_vector;
    if (begin_vector >= end_vector) continue;
    Rectangle* last = plan.count > 0 ? &plan.rectangles[plan.count - 1] : nullptr;
    if (last && last->key_end == k && last->vector_begin == begin_vector && last->vector_end == end_vector)
      last->key_end = end;
    else
      plan.rectangles[plan.count++] = {k, end, begin_vector, end_vector};
  }
  return plan;
}

// Sets the scores [kBlock][kBlock] of pairs that do not see each other to -inf.
HWY_INLINE void mask_scores(const MaskView& mask, const QueryBlock& block, const TilePlan& plan, int32_t key,
                            float* scores) {
  const Tag d;
  const hn::RebindToSigned<Tag> di;
  const Vector hidden = hn::Set(d, -std::numeric_limits<float>::infinity());
  for (int n = 0; n < plan.count; ++n) {
    const Rectangle& rect = plan.rectangles[n];
    for (int v = rect.vector_begin; v < rect.vector_end; ++v) {
      const auto lower = hn::LoadU(di, block.lower_key + v * kLanes);
      const auto query = hn::Iota(di, block.first + v * kLanes);
      for (int k = rect.key_begin; k < rect.key_end; ++k) {
        const auto above = hn::Gt(lower, hn::Set(di, key + k));
        const auto before = hn::Gt(hn::Set(di, mask.lower_query(key + k)), query);
        float* p = scores + k * kBlock + v * kLanes;
        const auto unseen = hn::RebindMask(d, hn::Or(above, before));
        hn::StoreU(hn::IfThenElse(unseen, hidden, hn::LoadU(d, p)), d, p);
      }
    }
  }
}

}  // namespace attention
}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, toggled per target
