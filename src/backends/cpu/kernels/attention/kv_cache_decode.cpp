// Attention of one token a sequence: a task is a chunk of one key-value head's cache and all query heads that
// share it, so keys and values cross memory once.
//
//   chunk:  scores = q · k  ─►  m = max, p = 2^(scores - m), l = sum p, o = sum p v      (per query head)
//   merge:  out = sum_c 2^(m_c - m) o_c / sum_c 2^(m_c - m) l_c,  m = max_c m_c          (chunks in order)
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/attention/kv_cache_decode.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include <algorithm>

#include "backends/cpu/kernels/attention/attention_layout.h"
#include "backends/cpu/kernels/attention/kv_cache.h"
#include "backends/cpu/kernels/stored-inl.h"
#include "backends/cpu/kernels/vector_math-inl.h"
#include "backends/cpu/kernels/vectors-inl.h"

#ifndef PLIMSOLL_BACKENDS_CPU_KERNELS_KV_CACHE_DECODE_ARGS_
#define PLIMSOLL_BACKENDS_CPU_KERNELS_KV_CACHE_DECODE_ARGS_
namespace plimsoll::cpu {

/// What a chunk leaves of one query head: [max, sum, out...], head_dim + kPartialHead floats.
inline constexpr int64_t kPartialHead = 2;

/// One task's operands: `heads` queries side by side, and the positions of the chunk that they see.
struct DecodeTask {
  const float* q = nullptr;
  int64_t heads = 0, head_dim = 0;
  StoredCache cache = {};  ///< from position 0 on
  int64_t stride = 0;      ///< elements between positions
  int64_t begin = 0, end = 0;
  float scale = 1;           ///< of scores in base 2
  float* partial = nullptr;  ///< [heads][kPartialHead + head_dim]
};

}  // namespace plimsoll::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using vectors::F32;
using vectors::Full;
using vectors::kWidth;
using vectors::load;
using vectors::Tail;
using vectors::V;

// Query heads that share the loads of a key; vectors of a value's row that are held as sums.
inline constexpr int kHeads = 4;
inline constexpr int kVectors = kWidth >= 16 ? 4 : 2;

// scores[h][j - begin] = scale * q_h · k_j for heads [h, h + H).
template <class Element, int H>
HWY_INLINE void score_keys(const DecodeTask& t, int64_t h, float (*scores)[kDecodeChunk]) {
  for (int64_t j = t.begin; j < t.end; ++j) {
    const Element* k = reinterpret_cast<const Element*>(t.cache.k) + j * t.stride;
    V sum[H];
#pragma GCC unroll 4
    for (V& s : sum) s = vectors::zero();
    vectors::for_vectors(t.head_dim, [&](int64_t i, auto part) HWY_ATTR {
      const V key = stored::load(k + i, part);
      for (int n = 0; n < H; ++n)
        sum[n] = hn::MulAdd(key, load(t.q + (h + n) * t.head_dim + i, part), sum[n]);
    });
    for (int n = 0; n < H; ++n) scores[n][j - t.begin] = hn::GetLane(hn::SumOfLanes(F32(), sum[n])) * t.scale;
  }
}

// scores -> 2^(scores - max); max and sum to `partial`.
HWY_INLINE void exponentiate(float* scores, int64_t count, float* partial) {
  V highest = vectors::set(scores[0]);
  int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) highest = hn::Max(highest, load(scores + i, Full{}));
  float max = hn::GetLane(hn::MaxOfLanes(F32(), highest));
  for (; i < count; ++i) max = std::max(max, scores[i]);
  const V m = vectors::set(max);
  partial[0] = max;
  partial[1] = vectors::sum_of(count, [&](int64_t at, auto part) HWY_ATTR {
    const V e = Exp2NonPositive(F32(), hn::Sub(load(scores + at, part), m));
    vectors::store(e, scores + at, part);
    // Beyond the end stands 2^-max, which the sum must not take.
    if constexpr (std::is_same_v<decltype(part), Tail>)
      return hn::IfThenElseZero(hn::FirstN(F32(), part.count), e);
    else
      return e;
  });
}

// N vectors, each of them `part`, of the outputs of heads [h, h + H) from element c on.
template <class Element, int H, int N, class Part>
HWY_INLINE void weigh_values(const DecodeTask& t, int64_t h, int64_t c, Part part,
                             const float (*weights)[kDecodeChunk]) {
  V sum[H][N];
#pragma GCC unroll 4
  for (auto& of_head : sum)
#pragma GCC unroll 4
    for (V& s : of_head) s = vectors::zero();
  for (int64_t j = t.begin; j < t.end; ++j) {
    const Element* v = reinterpret_cast<const Element*>(t.cache.v) + j * t.stride + c;
    V value[N];
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) value[n] = stored::load(v + n * kWidth, part);
#pragma GCC unroll 4
    for (int m = 0; m < H; ++m) {
      const V w = vectors::set(weights[m][j - t.begin]);
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) sum[m][n] = hn::MulAdd(w, value[n], sum[m][n]);
    }
  }
#pragma GCC unroll 4
  for (int m = 0; m < H; ++m) {
    float* out = t.partial + (h + m) * (kPartialHead + t.head_dim) + kPartialHead + c;
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) vectors::store(sum[m][n], out + n * kWidth, part);
  }
}

template <class Element, int H>
HWY_INLINE void decode_heads(const DecodeTask& t, int64_t h) {
  alignas(64) float scores[H][kDecodeChunk];
  score_keys<Element, H>(t, h, scores);
  for (int n = 0; n < H; ++n)
    exponentiate(scores[n], t.end - t.begin, t.partial + (h + n) * (kPartialHead + t.head_dim));
  int64_t c = 0;
  for (; c + kVectors * kWidth <= t.head_dim; c += kVectors * kWidth)
    weigh_values<Element, H, kVectors>(t, h, c, Full{}, scores);
  for (; c + kWidth <= t.head_dim; c += kWidth) weigh_values<Element, H, 1>(t, h, c, Full{}, scores);
  if (c < t.head_dim) weigh_values<Element, H, 1>(t, h, c, Tail{static_cast<size_t>(t.head_dim - c)}, scores);
}

template <class Element>
HWY_INLINE void decode_all_heads(const DecodeTask& t) {
  int64_t h = 0;
  for (; h + kHeads <= t.heads; h += kHeads) decode_heads<Element, kHeads>(t, h);
  switch (t.heads - h) {
    case 1:
      return decode_heads<Element, 1>(t, h);
    case 2:
      return decode_heads<Element, 2>(t, h);
    case 3:
      return decode_heads<Element, 3>(t, h);
    default:
      return;
  }
}

void decode_task(const DecodeTask& t) {
  stored::with_element(t.cache.dtype, [&](auto element) HWY_ATTR { decode_all_heads<decltype(element)>(t); });
}

// One query head's output from the partial results of `count` chunks, `stride` floats apart.
void merge_chunks(const float* partial, int64_t count, int64_t stride, int64_t head_dim, float* out) {
  float max = partial[0];
  for (int64_t c = 1; c < count; ++c) max = std::max(max, partial[c * stride]);
  V total = vectors::zero();
  for (int64_t c = 0; c < count; ++c) {
    const float* p = partial + c * stride;
    const V factor = Exp2NonPositive(F32(), vectors::set(p[0] - max));
    total = hn::MulAdd(factor, vectors::set(p[1]), total);
    vectors::for_vectors(head_dim, [&](int64_t i, auto part) HWY_ATTR {
      const V scaled = hn::Mul(factor, load(p + kPartialHead + i, part));
      vectors::store(c == 0 ? scaled : hn::Add(load(out + i, part), scaled), out + i, part);
    });
  }
  const V inverse = hn::Div(vectors::set(1.0f), total);
  vectors::for_vectors(head_dim, [&](int64_t i, auto part) HWY_ATTR {
    vectors::store(hn::Mul(load(out + i, part), inverse), out + i, part);
  });
}

float log2_e() { return vector_math::kLog2E; }

}  // namespace
}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backends/cpu/kernels/operands.h"

namespace plimsoll::cpu {
namespace {

HWY_EXPORT(decode_task);
HWY_EXPORT(merge_chunks);
HWY_EXPORT(log2_e);

// Positions [first, last] that a row's token sees, and the chunks that hold them.
struct Seen {
  int64_t first = 0, last = 0;
  [[nodiscard]] int64_t first_chunk() const { return first / kDecodeChunk; }
  [[nodiscard]] int64_t num_chunks() const { return last / kDecodeChunk - first_chunk() + 1; }
};

Seen seen_by(const AttentionArgs& a, int64_t b) {
  const int64_t position = a.start[b], last = std::min(position, a.cached_keys - 1);
  return {a.window > 0 ? std::clamp<int64_t>(position - a.window + 1, 0, last) : 0, last};
}

}  // namespace

int64_t attention_decode_workspace_bytes(const AttentionShape& shape, int64_t cached_keys) {
  return shape.batch * shape.num_heads * ceil_div(cached_keys, kDecodeChunk) *
         (kPartialHead + shape.head_dim) * int64_t{sizeof(float)};
}

void attention_decode(const AttentionArgs& a, const StoredCache& cache, ThreadPool& pool,
                      std::span<std::byte> workspace) {
  check_attention(a);
  const AttentionShape& s = a.shape;
  const int64_t group = s.num_heads / s.num_kv_heads, partial_floats = kPartialHead + s.head_dim;
  const int64_t room = ceil_div(a.cached_keys, kDecodeChunk);  // chunks that the workspace has place for
  auto* partials = reinterpret_cast<float*>(workspace.data());
  // [batch][kv head][chunk][query head of the group]
  const auto partial = [&](int64_t b, int64_t kv, int64_t chunk) {
    return partials + ((b * s.num_kv_heads + kv) * room + chunk) * group * partial_floats;
  };
  int64_t most_chunks = 0;
  for (int64_t b = 0; b < s.batch; ++b) most_chunks = std::max(most_chunks, seen_by(a, b).num_chunks());
  const float scale = a.scale * HWY_DYNAMIC_DISPATCH(log2_e)();
  const auto decode = HWY_DYNAMIC_DISPATCH(decode_task);
  const int64_t element_bytes = ir::bits(cache.dtype) / 8;
  const int64_t pairs = s.batch * s.num_kv_heads;
  pool.run(pairs * most_chunks, [&](int64_t tile, int) {
    const int64_t b = tile % pairs / s.num_kv_heads, kv = tile % s.num_kv_heads, chunk = tile / pairs;
    const Seen seen = seen_by(a, b);
    if (chunk >= seen.num_chunks()) return;
    const int64_t begin = (seen.first_chunk() + chunk) * kDecodeChunk;
    decode({.q = a.q + head_offset(s, b, kv * group, a.q_token_stride),
            .heads = group,
            .head_dim = s.head_dim,
            .cache = {.k = cache.k + key_head_offset(a, b, kv, a.k_token_stride) * element_bytes,
                      .v = cache.v + key_head_offset(a, b, kv, a.v_token_stride) * element_bytes,
                      .dtype = cache.dtype},
            .stride = a.k_token_stride,
            .begin = std::max(begin, seen.first),
            .end = std::min(begin + kDecodeChunk, seen.last + 1),
            .scale = scale,
            .partial = partial(b, kv, chunk)});
  });
  const auto merge = HWY_DYNAMIC_DISPATCH(merge_chunks);
  for_row_blocks(pool, s.batch * s.num_heads, s.head_dim * most_chunks, [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      const int64_t b = row / s.num_heads, h = row % s.num_heads;
      merge(partial(b, h / group, 0) + h % group * partial_floats, seen_by(a, b).num_chunks(),
            group * partial_floats, s.head_dim, a.out + head_offset(s, b, h, a.out_token_stride));
    }
  });
}

}  // namespace plimsoll::cpu
#endif
