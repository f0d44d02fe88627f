// Attention with grouped key/value heads, causal or not, in a sliding window, within documents; on separate q, k, v
// and on packed rows q | k | v. Source: Vaswani et al. 2017, arXiv:1706.03762; grouped: Ainslie et al. 2023, arXiv:2305.13245.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "ops/operands.h"

namespace plimsoll::ops {
namespace {

/// The extents of an attention, whichever way its operands are laid out.
struct Extents {
  int64_t batch = 1, tokens = 1, heads = 1, kv_heads = 1, head_dim = 1;
  [[nodiscard]] int64_t packed() const { return (heads + 2 * kv_heads) * head_dim; }
};

Extents extents_of(const Shape& q, const Shape& k) { return {q.dim(0), q.dim(1), q.dim(2), k.dim(2), q.dim(3)}; }
Extents extents_of(const Shape& qkv, const ir::Attrs& attrs) {
  return {qkv.dim(0), qkv.dim(1), attrs.i64("heads"), attrs.i64("kv_heads"), attrs.i64("head_dim")};
}

// ---- inference -----------------------------------------------------------------------------------------------------

void check_common(Operands& in, const OpTypes& t, const Extents& e, size_t doc_start) {
  const int64_t window = t.attrs.i64("window");
  in.dtypes(DType::kF32, {doc_start}).shaped(doc_start, Shape{e.batch, e.tokens});
  in.require(e.heads % e.kv_heads == 0, fmt::format("{} heads are no multiple of {} kv heads", e.heads, e.kv_heads));
  in.require(window >= 0 && (window == 0 || t.attrs.flag("causal")), "window must be positive, or 0 for none, and causal");
  in.require(std::isfinite(t.attrs.f64("scale")), "scale must be finite");
}

void check_separate(Operands& in, const OpTypes& t) {
  const Shape& q = t.inputs[0].shape;
  const Shape& k = t.inputs[1].shape;
  in.require(q.rank() == 4, "q must be [B,T,heads,head_dim]", {0});
  in.require(k.rank() == 4 && k.dim(0) == q.dim(0) && k.dim(1) == q.dim(1) && k.dim(3) == q.dim(3),
             "k must be [B,T,kv_heads,head_dim] as q", {0, 1});
  in.shaped(2, k);
}

Result<Types> infer_attention(const OpTypes& t) {
  Operands in(t, 3, {"q", "k", "v", "doc_start"});
  if (in) check_separate(in, t);
  if (!in) return in.error();
  const Extents e = extents_of(t.inputs[0].shape, t.inputs[1].shape);
  check_common(in, t, e, 3);
  return in.results({t.inputs[0], {DType::kF32, Shape{e.batch, e.heads, e.tokens}}});
}

Result<Types> infer_attention_grad(const OpTypes& t) {
  Operands in(t, 6, {"q", "k", "v", "out", "lse", "dout", "doc_start"});
  if (in) check_separate(in, t);
  if (!in) return in.error();
  const Shape& q = t.inputs[0].shape;
  const Extents e = extents_of(q, t.inputs[1].shape);
  check_common(in, t, e, 6);
  in.shaped(3, q).shaped(4, Shape{e.batch, e.heads, e.tokens}).shaped(5, q);
  return in.results({t.inputs[0], t.inputs[1], t.inputs[2]});
}

void check_packed(Operands& in, const OpTypes& t) {
  static constexpr int64_t kMaxHeads = int64_t{1} << 20;
  const Shape& qkv = t.inputs[0].shape;
  in.require(qkv.rank() == 3, "qkv must be [B,T,(heads+2*kv_heads)*head_dim]", {0});
  for (const std::string_view name : {"heads", "kv_heads", "head_dim"})
    in.require(t.attrs.i64(name) >= 1 && t.attrs.i64(name) <= kMaxHeads, fmt::format("{} out of range", name));
  if (!in) return;
  const Extents e = extents_of(qkv, t.attrs);
  in.require(qkv.dim(2) == e.packed(),
             fmt::format("qkv does not hold {} + 2 * {} heads of {}", e.heads, e.kv_heads, e.head_dim), {0});
}

Result<Types> infer_attention_packed(const OpTypes& t) {
  Operands in(t, 1, {"qkv", "doc_start"});
  if (in) check_packed(in, t);
  if (!in) return in.error();
  const Extents e = extents_of(t.inputs[0].shape, t.attrs);
  check_common(in, t, e, 1);
  return in.results({{DType::kF32, Shape{e.batch, e.tokens, e.heads * e.head_dim}},
                     {DType::kF32, Shape{e.batch, e.heads, e.tokens}}});
}

Result<Types> infer_attention_packed_grad(const OpTypes& t) {
  Operands in(t, 4, {"qkv", "out", "lse", "dout", "doc_start"});
  if (in) check_packed(in, t);
  if (!in) return in.error();
  const Extents e = extents_of(t.inputs[0].shape, t.attrs);
  const Shape out{e.batch, e.tokens, e.heads * e.head_dim};
  check_common(in, t, e, 4);
  return in.shaped(1, out).shaped(2, Shape{e.batch, e.heads, e.tokens}).shaped(3, out).results({t.inputs[0]});
}

// ---- derivatives ---------------------------------------------------------------------------------------------------

void vjp_attention(VjpContext& ctx) {
  const Op op = ctx.op();
  const ValueId dout = ctx.cotangent(0);
  PLIMSOLL_CHECK(!ctx.cotangent(1).valid(), "attention: lse is kept for the derivative and has none itself");
  if (!dout.valid() || (!ctx.wants(0) && !ctx.wants(1) && !ctx.wants(2))) return;
  std::vector<ValueId> inputs = {op.inputs[0], op.inputs[1], op.inputs[2], op.outputs[0], op.outputs[1], dout};
  if (op.inputs.size() > 3) inputs.push_back(op.inputs[3]);
  const auto grads = ctx.builder().ops("attention_grad", trimmed(std::move(inputs)), op.attrs);
  for (size_t i = 0; i < 3; ++i)
    if (ctx.wants(i)) ctx.add(i, grads[i]);
}

void vjp_attention_packed(VjpContext& ctx) {
  const Op op = ctx.op();
  const ValueId dout = ctx.cotangent(0);
  PLIMSOLL_CHECK(!ctx.cotangent(1).valid(), "attention_packed: lse is kept for the derivative and has none itself");
  if (!dout.valid() || !ctx.wants(0)) return;
  std::vector<ValueId> inputs = {op.inputs[0], op.outputs[0], op.outputs[1], dout};
  if (op.inputs.size() > 1) inputs.push_back(op.inputs[1]);
  ctx.add(0, ctx.builder().op("attention_packed_grad", trimmed(std::move(inputs)), op.attrs));
}

// ---- cost: two products a visible pair forward, five backward --------------------------------------------------------

/// Pairs (i, j) that see each other in a sequence of `tokens`: half of all where causal.
double visible_pairs(const Extents& e, const ir::Attrs& attrs) {
  const auto tokens = static_cast<double>(e.tokens);
  if (!attrs.flag("causal")) return tokens * tokens;
  const int64_t window = attrs.i64("window");
  const auto seen = static_cast<double>(window == 0 ? e.tokens : std::min(window, e.tokens));
  return seen * (seen + 1) / 2 + (tokens - seen) * seen;
}

Cost attention_cost(const OpTypes& t, const Extents& e, int products) {
  const auto heads = static_cast<double>(e.batch * e.heads);
  return cost_of(t, 2.0 * products * heads * visible_pairs(e, t.attrs) * static_cast<double>(e.head_dim));
}
Cost cost_attention(const OpTypes& t) {
  return attention_cost(t, extents_of(t.inputs[0].shape, t.inputs[1].shape), 2);
}
Cost cost_attention_grad(const OpTypes& t) {
  return attention_cost(t, extents_of(t.inputs[0].shape, t.inputs[1].shape), 5);
}
Cost cost_attention_packed(const OpTypes& t) { return attention_cost(t, extents_of(t.inputs[0].shape, t.attrs), 2); }
Cost cost_attention_packed_grad(const OpTypes& t) {
  return attention_cost(t, extents_of(t.inputs[0].shape, t.attrs), 5);
}

// ---- references ------------------------------------------------------------------------------------------------------

/// q, k or v (or a gradient of one): where element 0 of token t's head h lies. Tokens are counted over the batch.
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

  [[nodiscard]] bool sees(int64_t b, int64_t i, int64_t j) const {
    if (causal && j > i) return false;
    if (window > 0 && j <= i - window) return false;
    return doc_start == nullptr || j >= static_cast<int64_t>(doc_start->data[static_cast<size_t>(b * e.tokens + i)]);
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

Problem problem_of(const RefContext& ctx, const Extents& e, const std::array<Heads<const double>, 3>& qkv, size_t doc) {
  const ir::Attrs& attrs = ctx.op.attrs;
  return {e, qkv[0], qkv[1], qkv[2], doc < ctx.inputs.size() ? ctx.inputs[doc] : nullptr, attrs.f64("scale"),
          attrs.flag("causal"), attrs.i64("window")};
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
    for (int64_t d = 0; d < p.e.head_dim; ++d) out[d] += weight * vj[d];
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
        forward_row(p, b, h, i, rows.at(b * p.e.tokens + i, h), lse.data[at((b * p.e.heads + h) * p.e.tokens + i)]);
}

double dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

struct Saved {
  const RefTensor *out, *lse, *dout;
};

/// P = exp(S - lse), dP = dout v^T, dS = P * (dP - dout . out); dq = dS k, dk = dS^T q, dv = P^T dout.
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
          const double weight = std::exp(p.score(b, h, i, j) - saved.lse->data[at((b * p.e.heads + h) * p.e.tokens + i)]);
          const double ds = weight * (dot(dout.at(ti, h), p.v.at(tj, kv), width) - delta) * p.scale;
          for (int64_t d = 0; d < width; ++d) {
            grads[0].at(ti, h)[d] += ds * p.k.at(tj, kv)[d];
            grads[1].at(tj, kv)[d] += ds * p.q.at(ti, h)[d];
            grads[2].at(tj, kv)[d] += weight * dout.at(ti, h)[d];
          }
        }
      }
}

const double* data(const RefContext& ctx, size_t i) { return ctx.inputs[i]->data.data(); }

void reference_attention(RefContext& ctx) {
  const Extents e = extents_of(ctx.inputs[0]->type.shape, ctx.inputs[1]->type.shape);
  const auto qkv = separate(e, data(ctx, 0), data(ctx, 1), data(ctx, 2));
  forward(problem_of(ctx, e, qkv, 3), *ctx.outputs[0], *ctx.outputs[1]);
}

void reference_attention_grad(RefContext& ctx) {
  const Extents e = extents_of(ctx.inputs[0]->type.shape, ctx.inputs[1]->type.shape);
  const auto qkv = separate(e, data(ctx, 0), data(ctx, 1), data(ctx, 2));
  const auto grads = separate(e, ctx.outputs[0]->data.data(), ctx.outputs[1]->data.data(), ctx.outputs[2]->data.data());
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

}  // namespace

OpGroup attention_ops() {
  using enum ir::RecomputeClass;
  using enum ir::AutocastClass;
  const std::vector<AttrSpec> masks = {float_attr("scale"), bool_attr("causal"), int_attr("window")};
  const std::vector<AttrSpec> rows = {int_attr("heads"),    int_attr("kv_heads"), int_attr("head_dim"),
                                      float_attr("scale"), bool_attr("causal"),  int_attr("window")};
  static const std::vector<OpDef> kOps = {
      {.name = "attention", .summary = "softmax(scale * q k^T) v", .min_inputs = 3, .max_inputs = 4, .attrs = masks,
       .infer = infer_attention, .vjp = vjp_attention, .cost = cost_attention, .reference = reference_attention,
       .autocast = kLowPrecision, .recompute = kCompute},
      {.name = "attention_grad", .summary = "cotangents of q, k and v", .min_inputs = 6, .max_inputs = 7,
       .attrs = masks, .infer = infer_attention_grad, .cost = cost_attention_grad,
       .reference = reference_attention_grad, .autocast = kLowPrecision, .recompute = kCompute},
      {.name = "attention_packed", .summary = "attention on rows q | k | v", .min_inputs = 1, .max_inputs = 2,
       .attrs = rows, .infer = infer_attention_packed, .vjp = vjp_attention_packed, .cost = cost_attention_packed,
       .reference = reference_attention_packed, .autocast = kLowPrecision, .recompute = kCompute},
      {.name = "attention_packed_grad", .summary = "cotangent of the rows", .min_inputs = 4, .max_inputs = 5,
       .attrs = rows, .infer = infer_attention_packed_grad, .cost = cost_attention_packed_grad,
       .reference = reference_attention_packed_grad, .autocast = kLowPrecision, .recompute = kCompute},
  };
  return kOps;
}

Attention attention(Builder& b, ValueId q, ValueId k, ValueId v, ValueId doc_start, const AttentionOptions& options) {
  const auto results = b.ops("attention", trimmed({q, k, v, doc_start}),
                             {{"scale", options.scale}, {"causal", options.causal}, {"window", options.window}});
  return {results[0], results[1]};
}

}  // namespace plimsoll::ops
