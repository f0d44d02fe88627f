// The plan of one tile of attention: what is computed and what the mask leaves out. Compiled once per target.
//
// Both passes hold queries in vector lanes. A block of kBlock queries is packed transposed,
// [head_dim][kBlock], and
//
//   scores^T [keys][queries] = K [keys][head_dim] . Q^T [head_dim][queries]
//   out^T [head_dim][queries] += V^T [head_dim][keys] . P^T [keys][queries]
//
// so softmax runs down the rows of a tile without a horizontal operation, keys and values are read where they
// lie, one scalar at a time, and any head_dim fits without a tail. A tile that the mask cuts is a list of
// rectangles, keys x vectors of queries, that leaves out what no query sees:
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
#include <limits>

#include "backends/cpu/kernels/attention/attention_layout.h"
#include "backends/cpu/kernels/attention/attention_products-inl.h"
#include "backends/cpu/kernels/philox-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace attention {
// A rectangle of a tile: keys [key_begin, key_end) of the tile, vectors [vector_begin, vector_end) of the
// block.
struct Rectangle {
  int key_begin = 0, key_end = 0, vector_begin = 0, vector_end = 0;
};

// Keys are sorted into rectangles in steps of this many.
inline constexpr int kKeyStep = 8;

// What one tile computes. Only where `masked` is set do single elements need the comparison.
struct TilePlan {
  int count = 0;
  bool masked = false;
  Rectangle rectangles[kBlock / kKeyStep];
};

// Which keys the queries of one block see: i sees j if j >= lower_key[i] and i >= the key's least query.
struct QueryBlock {
  int32_t first = 0;
  int rows = 0, vectors = 0;
  int32_t min_lower_key = 0, max_lower_key = 0;
  int32_t vector_min_lower_key[kBlockVectors] = {};
  alignas(64) int32_t lower_key[kBlock] = {};
};

HWY_INLINE QueryBlock make_query_block(const MaskView& mask, int64_t index) {
  QueryBlock block;
  block.first = static_cast<int32_t>(mask.start + index * kBlock);
  block.rows = static_cast<int>(std::min<int64_t>(kBlock, mask.queries - index * kBlock));
  block.vectors = (block.rows + kLanes - 1) / kLanes;
  if (!mask.doc_start && mask.window == 0) return block;
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

// The rectangles of the tile of `block` and keys [key, key + num_keys), num_keys <= kBlock; none if it is
// hidden.
HWY_INLINE TilePlan plan_tile(const MaskView& mask, const QueryBlock& block, int32_t key, int num_keys) {
  TilePlan plan;
  const int32_t last_query = block.first + block.rows - 1, last_key = key + num_keys - 1;
  if (last_key < block.min_lower_key || (mask.causal && key > last_query)) return plan;
  // Of the keys' least queries the largest: documents lie one behind the other.
  const int32_t max_query = mask.lower_query(last_key);
  if (key >= block.max_lower_key && max_query <= block.first) {
    plan.count = 1;
    plan.rectangles[0] = {0, num_keys, 0, block.vectors};
    return plan;
  }
  plan.masked = true;
  for (int k = 0; k < num_keys; k += kKeyStep) {
    const int end = std::min(k + kKeyStep, num_keys);
    int32_t min_query = std::numeric_limits<int32_t>::max();
    for (int i = k; i < end; ++i) min_query = std::min(min_query, mask.lower_query(key + i));
    const int begin_vector = std::max(0, min_query - block.first) / kLanes;
    int end_vector = block.vectors;
    while (end_vector > begin_vector && block.vector_min_lower_key[end_vector - 1] > key + end - 1)
      --end_vector;
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

// What one tile of one head drops. Four keys share a block of words.
struct TileDropout {
  ops::RandomStream stream;
  uint32_t threshold = 0;
  float inverse_keep = 1.0f;
  int64_t tokens = 0;

  HWY_INLINE philox::Words draw(int64_t query, int64_t key) const {
    return philox::attention_vectors(stream, ops::attention_block(query, key, tokens));
  }
};

inline constexpr int kKeysPerDraw = 4;
static_assert(kKeyStep % kKeysPerDraw == 0, "rectangles begin at a block of words");

// f(place in the tile, vector of the block, which elements stay) over the vectors that the tile computes.
template <class F>
HWY_INLINE void for_kept(const TilePlan& plan, const TileDropout& drop, int32_t first_query,
                         int32_t first_key, F f) {
  const philox::Threshold threshold(drop.threshold);
  for (int n = 0; n < plan.count; ++n) {
    const Rectangle& rect = plan.rectangles[n];
    for (int v = rect.vector_begin; v < rect.vector_end; ++v)
      for (int k = rect.key_begin; k < rect.key_end; k += kKeysPerDraw) {
        const philox::Words words = drop.draw(first_query + v * kLanes, first_key + k);
        for (int i = 0; i < std::min(kKeysPerDraw, rect.key_end - k); ++i)
          f((k + i) * kBlock + v * kLanes, v, threshold.keeps(words.word[i]));
      }
  }
}

}  // namespace attention
}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, toggled per target
