// Row by row, the softmax over all that a token sees; nothing is tiled.
#include "ops/attention_reference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ops/random_operand.h"

namespace plimsoll::ops {
namespace {

// ------------------------------------------------------------------------------------------------------

/// q, k or v (or a gradient of one): where element 0 of token t's head h lies. Tokens are counted over the
/// batch.
template <typename T>
struct Heads {
  T* data;
  int64_t token_stride, head_dim;
  T* at(int64_t token, int64_t head) const { return data + token * token_stride + head * head_dim; }
};

struct Problem {
  Extents e;
  Heads<const double> q, k, v;
  const RefTensor* doc_start;
  double scale;
  bool causal;
  int64_t window;
  double drop = 0;  ///< probability
  RandomStream stream = {};

  /// 0 where the weight is dropped, else what makes up for those that are.
  [[nodiscard]] double kept(int64_t b, int64_t h, int64_t i, int64_t j) const {
    if (drop == 0) return 1;
    RandomStream s = attention_stream(stream, h);
    s.sequence += static_cast<uint32_t>(b);
    const uint32_t word = attention_words(s, attention_block(i, j, e.tokens))[at(j % 4)];
    return uniform(word) >= drop ? 1 / (1 - drop) : 0;
  }
  [[nodiscard]] bool sees(int64_t b, int64_t i, int64_t j) const {
    if (causal && j > i) return false;
    if (window > 0 && (j <= i - window || j >= i + window)) return false;
    if (doc_start == nullptr) return true;  // else only within one document
    const double* start = &doc_start->data[static_cast<size_t>(b * e.tokens)];
    return static_cast<double>(j) >= start[i] && static_cast<double>(i) >= start[j];
  }
  [[nodiscard]] double score(int64_t b, int64_t h, int64_t i, int64_t j) const {
    const double* qi = q.at(b * e.tokens + i, h);
    const double* kj = k.at(b * e.tokens + j, h / (e.heads / e.kv_heads));
    double sum = 0;
    for (int64_t d = 0; d < e.head_dim; ++d) sum += qi[d] * kj[d];
    return sum * scale;
  }
};

template <typename T>
std::array<Heads<T>, 3> separate(const Extents& e, T* q, T* k, T* v) {
  const int64_t d = e.head_dim;
  return {Heads<T>{q, e.heads * d, d}, Heads<T>{k, e.kv_heads * d, d}, Heads<T>{v, e.kv_heads * d, d}};
}
template <typename T>
std::array<Heads<T>, 3> packed(const Extents& e, T* qkv) {
  const int64_t d = e.head_dim;
  return {Heads<T>{qkv, e.packed(), d}, Heads<T>{qkv + e.heads * d, e.packed(), d},
          Heads<T>{qkv + (e.heads + e.kv_heads) * d, e.packed(), d}};
}

Problem problem_of(const RefContext& ctx, const Extents& e, const std::array<Heads<const double>, 3>& qkv,
                   size_t doc) {
  const ir::Attrs& attrs = ctx.op.attrs;
  Problem p{e,
            qkv[0],
            qkv[1],
            qkv[2],
            doc < ctx.inputs.size() ? ctx.inputs[doc] : nullptr,
            attrs.f64("scale"),
            attrs.flag("causal"),
            attrs.i64("window")};
  if (doc + 1 < ctx.inputs.size() && ctx.inputs[doc + 1] != nullptr) {
    p.drop = attrs.f64("p");
    p.stream = stream_of(*ctx.inputs[doc + 1], attrs);
  }
  return p;
}

void forward_row(const Problem& p, int64_t b, int64_t h, int64_t i, double* out, double& lse) {
  const int64_t tokens = p.e.tokens;
  double highest = -std::numeric_limits<double>::infinity();
  for (int64_t j = 0; j < tokens; ++j)
    if (p.sees(b, i, j)) highest = std::max(highest, p.score(b, h, i, j));
  double total = 0;
  std::fill(out, out + p.e.head_dim, 0.0);
  for (int64_t j = 0; j < tokens; ++j) {
    if (!p.sees(b, i, j)) continue;
    const double weight = std::exp(p.score(b, h, i, j) - highest);
    const double* vj = p.v.at(b * tokens + j, h / (p.e.heads / p.e.kv_heads));
    total += weight;
    const double kept = weight * p.kept(b, h, i, j);
    for (int64_t d = 0; d < p.e.head_dim; ++d) out[d] += kept * vj[d];
  }
  if (total > 0)
    for (int64_t d = 0; d < p.e.head_dim; ++d) out[d] /= total;
  lse = highest + std::log(total);
}

void forward(const Problem& p, RefTensor& out, RefTensor& lse) {
  const Heads<double> rows{out.data.data(), p.e.heads * p.e.head_dim, p.e.head_dim};
  for (int64_t b = 0; b < p.e.batch; ++b)
    for (int64_t h = 0; h < p.e.heads; ++h)
      for (int64_t i = 0; i < p.e.tokens; ++i)
        forward_row(p, b, h, i, rows.at(b * p.e.tokens + i, h),
                    lse.data[at((b * p.e.heads + h) * p.e.tokens + i)]);
}

double dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

struct Saved {
  const RefTensor *out, *lse, *dout;
};

/// P = exp(S - lse), dP = M * dout v^T, dS = P * (dP - dout . out); dq = dS k, dk = dS^T q, dv = (M * P)^T
/// dout, where M is what dropout keeps (1 without it).
void backward(const Problem& p, const Saved& saved, const std::array<Heads<double>, 3>& grads) {
  const int64_t width = p.e.head_dim;
  const Heads<const double> out{saved.out->data.data(), p.e.heads * width, width};
  const Heads<const double> dout{saved.dout->data.data(), p.e.heads * width, width};
  for (int64_t b = 0; b < p.e.batch; ++b)
    for (int64_t h = 0; h < p.e.heads; ++h)
      for (int64_t i = 0; i < p.e.tokens; ++i) {
        const int64_t ti = b * p.e.tokens + i;
        const double delta = dot(dout.at(ti, h), out.at(ti, h), width);
        for (int64_t j = 0; j < p.e.tokens; ++j) {
          if (!p.sees(b, i, j)) continue;
          const int64_t tj = b * p.e.tokens + j;
          const int64_t kv = h / (p.e.heads / p.e.kv_heads);
          const double weight =
              std::exp(p.score(b, h, i, j) - saved.lse->data[at((b * p.e.heads + h) * p.e.tokens + i)]);
          const double kept = p.kept(b, h, i, j);
          const double ds = weight * (kept * dot(dout.at(ti, h), p.v.at(tj, kv), width) - delta) * p.scale;
          for (int64_t d = 0; d < width; ++d) {
            grads[0].at(ti, h)[d] += ds * p.k.at(tj, kv)[d];
            grads[1].at(tj, kv)[d] += ds * p.q.at(ti, h)[d];
            grads[2].at(tj, kv)[d] += kept * weight * dout.at(ti, h)[d];
          }
        }
      }
}

const double* data(const RefContext& ctx, size_t i) { return ctx.inputs[i]->data.data(); }

}  // namespace

void reference_attention(RefContext& ctx) {
  const Extents e = extents_of(ctx.inputs[0]->type.shape, ctx.inputs[1]->type.shape);
  const auto qkv = separate(e, data(ctx, 0), data(ctx, 1), data(ctx, 2));
  forward(problem_of(ctx, e, qkv, 3), *ctx.outputs[0], *ctx.outputs[1]);
}

void reference_attention_grad(RefContext& ctx) {
  const Extents e = extents_of(ctx.inputs[0]->type.shape, ctx.inputs[1]->type.shape);
  const auto qkv = separate(e, data(ctx, 0), data(ctx, 1), data(ctx, 2));
  const auto grads =
      separate(e, ctx.outputs[0]->data.data(), ctx.outputs[1]->data.data(), ctx.outputs[2]->data.data());
  backward(problem_of(ctx, e, qkv, 6), {ctx.inputs[3], ctx.inputs[4], ctx.inputs[5]}, grads);
}

void reference_attention_packed(RefContext& ctx) {
  const Extents e = extents_of(ctx.inputs[0]->type.shape, ctx.op.attrs);
  forward(problem_of(ctx, e, packed(e, data(ctx, 0)), 1), *ctx.outputs[0], *ctx.outputs[1]);
}

void reference_attention_packed_grad(RefContext& ctx) {
  const Extents e = extents_of(ctx.inputs[0]->type.shape, ctx.op.attrs);
  backward(problem_of(ctx, e, packed(e, data(ctx, 0)), 4), {ctx.inputs[1], ctx.inputs[2], ctx.inputs[3]},
           packed(e, ctx.outputs[0]->data.data()));
}

}  // namespace plimsoll::ops
