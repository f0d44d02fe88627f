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
#include "hwy/cache_control.h"
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

// Lines that a later tile reads or writes, asked for a few at a time between products, so that fetching them overlaps
// with arithmetic: rows of one head are short pieces far apart, which no hardware prefetcher follows.
class Prefetcher {
 public:
  Prefetcher(int64_t row_floats, int rows_per_step) : row_floats_(row_floats), rows_per_step_(rows_per_step) {}
  void add(const float* first, int64_t stride, int64_t rows) { regions_[count_++] = {first, stride, rows}; }
  HWY_INLINE void step() {
    for (int n = 0; n < rows_per_step_ && at_ < count_; ++n) {
      Region& region = regions_[at_];
      for (int64_t i = 0; i < row_floats_; i += 16) hwy::Prefetch(region.next + i);
      hwy::Prefetch(region.next + row_floats_ - 1);
      region.next += region.stride;
      if (--region.rows == 0) ++at_;
    }
  }

 private:
  struct Region {
    const float* next = nullptr;
    int64_t stride = 0, rows = 0;
  };
  int64_t row_floats_;
  int rows_per_step_;
  int count_ = 0, at_ = 0;
  Region regions_[4];
};

// c [MR][NV vectors] = (accumulate ? c : 0) + a [MR][depth] . b [depth][NV vectors]. Element (r, p) of a lies at
// a[r + p * a_stride] if kColumns, else at a[r * a_stride + p].
template <int MR, int NV, bool kColumns>
HWY_NOINLINE void multiply_registers(int64_t depth, const float* HWY_RESTRICT a, int64_t a_stride,
                                     const float* HWY_RESTRICT b, int64_t b_stride, float* HWY_RESTRICT c,
                                     int64_t c_stride, bool accumulate) {
  const Tag d;
  Vector sum[MR][NV];
  const float* row_of_c = c;
  if (accumulate) {
#pragma GCC unroll 8
    for (int r = 0; r < MR; ++r, row_of_c += c_stride)
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) sum[r][v] = hn::LoadU(d, row_of_c + v * kLanes);
  } else {
#pragma GCC unroll 8
    for (int r = 0; r < MR; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) sum[r][v] = hn::Zero(d);
  }
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
  for (int r = 0; r < MR; ++r, c += c_stride)
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) hn::StoreU(sum[r][v], d, c + v * kLanes);
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

using Kernel = void (*)(int64_t, const float*, int64_t, const float*, int64_t, float*, int64_t, bool);

// multiply_registers for 1 to kRows rows and 1 to kVectors vectors.
template <bool kColumns>
HWY_INLINE Kernel kernel_for(int rows, int vectors) {
#define PLIMSOLL_ROWS(NV)                                                                  \
  {multiply_registers<1, NV, kColumns>, multiply_registers<2, NV, kColumns>,               \
   multiply_registers<3, NV, kColumns>, multiply_registers<4, NV, kColumns>,               \
   multiply_registers<5, NV, kColumns>, multiply_registers<6, NV, kColumns>}
  static constexpr Kernel kKernels[4][kRows] = {PLIMSOLL_ROWS(1), PLIMSOLL_ROWS(std::min(2, kVectors)),
                                                PLIMSOLL_ROWS(std::min(3, kVectors)),
                                                PLIMSOLL_ROWS(std::min(4, kVectors))};
#undef PLIMSOLL_ROWS
  return kKernels[vectors - 1][rows - 1];
}

template <bool kColumns>
HWY_INLINE void multiply(const Product& p, Prefetcher& prefetcher) {
  const int panels = (p.vectors + kVectors - 1) / kVectors;
  for (int panel = 0, v = 0; panel < panels; ++panel) {
    // Even shares: 5 vectors go as 3 + 2, since a single one leaves the multipliers waiting.
    const int width = (p.vectors - v + panels - panel - 1) / (panels - panel);
    for (int r = 0; r < p.rows; r += kRows) {
      prefetcher.step();
      const Kernel kernel = kernel_for<kColumns>(std::min(kRows, p.rows - r), width);
      kernel(p.depth, p.a + (kColumns ? r : r * p.a_stride), p.a_stride, p.b + v * kLanes, p.b_stride,
             p.c + r * p.c_stride + v * kLanes, p.c_stride, p.accumulate);
    }
    v += width;
  }
}

#if HWY_TARGET != HWY_SCALAR
// Blocks of 128 bits of v to `to`, `to` + block_stride, ...; kAdd: added to what is there.
template <bool kAdd, class D>
HWY_INLINE void store_blocks(D d, hn::Vec<D> v, float* to, int64_t block_stride) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    hn::StoreU(kAdd ? hn::Add(v, hn::LoadU(d, to)) : v, d, to);
  } else {
    const hn::Half<D> half;
    store_blocks<kAdd>(half, hn::LowerHalf(half, v), to, block_stride);
    store_blocks<kAdd>(half, hn::UpperHalf(half, v), to + hn::MaxLanes(D()) / 8 * block_stride, block_stride);
  }
}

// to[c][r] = factor * from[r][c] for four rows and kLanes columns.
template <bool kAdd>
HWY_INLINE void transpose_four_rows(const float* from, int64_t from_stride, Vector factor, float* to,
                                    int64_t to_stride) {
  const Tag d;
  const hn::Repartition<double, Tag> pairs;
  const Vector r0 = hn::Mul(factor, hn::LoadU(d, from)), r1 = hn::Mul(factor, hn::LoadU(d, from + from_stride));
  const Vector r2 = hn::Mul(factor, hn::LoadU(d, from + 2 * from_stride));
  const Vector r3 = hn::Mul(factor, hn::LoadU(d, from + 3 * from_stride));
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, r0, r1));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, r2, r3));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, r0, r1));
  const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, r2, r3));
  // Each block of 128 bits now becomes part of one column.
  store_blocks<kAdd>(d, hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23)), to, 4 * to_stride);
  store_blocks<kAdd>(d, hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23)), to + to_stride, 4 * to_stride);
  store_blocks<kAdd>(d, hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23)), to + 2 * to_stride, 4 * to_stride);
  store_blocks<kAdd>(d, hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23)), to + 3 * to_stride, 4 * to_stride);
}
#endif

// to[c][r] = factor * from[r][c], or that added to what is there.
template <bool kAdd>
HWY_INLINE void transpose(const float* from, int64_t from_stride, int64_t rows, int64_t columns, float factor, float* to,
                          int64_t to_stride) {
  int64_t whole_rows = 0, whole_columns = 0;
#if HWY_TARGET != HWY_SCALAR
  whole_rows = rows / 4 * 4, whole_columns = columns / kLanes * kLanes;
  for (int64_t c = 0; c < whole_columns; c += kLanes)
    for (int64_t r = 0; r < whole_rows; r += 4)
      transpose_four_rows<kAdd>(from + r * from_stride + c, from_stride, hn::Set(Tag(), factor),
                                to + c * to_stride + r, to_stride);
#endif
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = r < whole_rows ? whole_columns : 0; c < columns; ++c) {
      const float value = from[r * from_stride + c] * factor;
      float& p = to[c * to_stride + r];
      p = kAdd ? p + value : value;
    }
}

// Rows of head_dim values, multiplied by `factor`, into `to` [head_dim][kBlock]; the lanes behind them are zero.
HWY_INLINE void pack_transposed(const float* from, int64_t from_stride, int rows, int64_t head_dim, float factor,
                                float* to) {
  if (rows < kBlock)
    for (int64_t c = 0; c < head_dim; ++c) std::fill(to + c * kBlock + rows, to + (c + 1) * kBlock, 0.0f);
  transpose<false>(from, from_stride, rows, head_dim, factor, to, kBlock);
}

// to [rows][to_stride] = factor * from [rows][from_stride] for `columns` columns; kAdd: added to what is there.
template <bool kAdd>
HWY_INLINE void copy_rows(const float* from, int64_t from_stride, int64_t rows, int64_t columns, float factor, float* to,
                          int64_t to_stride) {
  const Tag d;
  const Vector scale = hn::Set(d, factor);
  const int64_t whole = columns / kLanes * kLanes;
  const auto tail = hn::FirstN(d, static_cast<size_t>(columns - whole));
  for (int64_t r = 0; r < rows; ++r, from += from_stride, to += to_stride) {
    for (int64_t c = 0; c < whole; c += kLanes) {
      const Vector value = hn::Mul(scale, hn::LoadU(d, from + c));
      hn::StoreU(kAdd ? hn::Add(value, hn::LoadU(d, to + c)) : value, d, to + c);
    }
    if (whole == columns) continue;
    const Vector value = hn::Mul(scale, hn::MaskedLoad(tail, d, from + whole));
    hn::BlendedStore(kAdd ? hn::Add(value, hn::MaskedLoad(tail, d, to + whole)) : value, tail, d, to + whole);
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
