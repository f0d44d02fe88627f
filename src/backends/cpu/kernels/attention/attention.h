// Scaled dot-product attention, forward and backward, tiled: no tokens x tokens matrix is stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/cpu/thread_pool.h"
#include "ops/philox.h"

namespace plimsoll::cpu {

/// num_heads is a multiple of num_kv_heads; query head h reads key and value head h / (num_heads /
/// num_kv_heads).
struct AttentionShape {
  int64_t batch = 0;
  int64_t tokens = 0;  ///< per sequence; any number, below 2^31
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;  ///< any number
};

/// Weights dropped after the softmax, drawn as ops/philox.h says; the stream's sequence is that of b = 0.
struct AttentionDropout {
  bool on = false;
  uint32_t threshold = 0;     ///< a weight stays where its word is at least this
  float inverse_keep = 1.0f;  ///< 1 / (1 - p), by which what stays is multiplied
  ops::RandomStream stream = {};
};

/// Operands of the forward pass, f32 or (attention_bf16.h) bf16; lse is f32. Element (b, t, h, d) of q is
/// q[(b * tokens + t) * q_token_stride + h * head_dim + d], and so for k, v (with h in [0, num_kv_heads)) and
/// out; strides count elements, so q, k, v may be slices of one packed projection.
///
/// Token i sees token j of its own sequence where all of these hold:
///   causal: j <= i;   window > 0: i - window < j < i + window;   doc_start: both tokens have the same
///   document.
template <typename Element>
struct AttentionArgsOf {
  AttentionShape shape = {};
  const Element* q = nullptr;
  const Element* k = nullptr;
  const Element* v = nullptr;
  int64_t q_token_stride = 0;
  int64_t k_token_stride = 0;
  int64_t v_token_stride = 0;
  float scale = 1.0f;  ///< of the scores, usually 1/sqrt(head_dim)
  bool causal = true;
  int64_t window = 0;  ///< 0: none
  const int32_t* doc_start =
      nullptr;  ///< [batch, tokens]: index in the sequence of the first token of t's document
  /// Forward over a cache: keys and values of a sequence, where they are not those of its own tokens; and the
  /// position of its token 0 among them, [batch], null: 0. Token i then stands at start + i; not with
  /// doc_start.
  int64_t cached_keys = 0;
  const int32_t* start = nullptr;
  AttentionDropout dropout = {};
  Element* out = nullptr;
  int64_t out_token_stride = 0;
  float* lse = nullptr;  ///< [batch, num_heads, tokens]: ln of the sum of exponentials of the scaled scores;
                         ///< null: not wanted (forward)
};

/// Operands of the backward pass. Gradients are laid out as their primals, each with its own token stride.
template <typename Element>
struct AttentionBackwardArgsOf {
  AttentionArgsOf<Element> forward =
      {};  ///< out and lse as the forward pass left them; nothing in it is written
  const Element* dout = nullptr;
  int64_t dout_token_stride = 0;
  Element* dq = nullptr;
  Element* dk = nullptr;
  Element* dv = nullptr;
  int64_t dq_token_stride = 0;
  int64_t dk_token_stride = 0;
  int64_t dv_token_stride = 0;
};

using AttentionArgs = AttentionArgsOf<float>;
using AttentionBackwardArgs = AttentionBackwardArgsOf<float>;

/// Bytes of scratch, functions of the shape and the number of threads alone. They grow with head_dim and
/// threads (and, backward, by 4 bytes per head and 64 tokens), not with tokens squared.
int64_t attention_forward_workspace_bytes(const AttentionShape& shape, int num_threads);
int64_t attention_backward_workspace_bytes(const AttentionShape& shape, int num_threads);

/// out = softmax(scale * q k^T + mask) v, and lse. A row that sees nothing gives out = 0 and lse = -inf.
/// Dtypes: f32 throughout; exponentials within 2.1 ulp.
/// Determinism: the same bits for any number of threads; a sequence's result depends on that sequence alone.
/// Memory: `workspace` holds attention_forward_workspace_bytes(), aligned to 64; nothing is allocated.
/// Source: Dao 2023, arXiv:2307.08691 (online softmax over tiles), with queries in vector lanes.
void attention_forward(const AttentionArgs& args, ThreadPool& pool, std::span<std::byte> workspace);

/// dq, dk, dv, written (not added to), from dout and what the forward pass left. dout * out summed over
/// head_dim takes the place of the softmax's Jacobian; the scores are recomputed tile by tile. Determinism,
/// memory: as the forward pass, with attention_backward_workspace_bytes(). Source: Dao 2023,
/// arXiv:2307.08691, algorithm 2.
void attention_backward(const AttentionBackwardArgs& args, ThreadPool& pool, std::span<std::byte> workspace);

}  // namespace plimsoll::cpu
