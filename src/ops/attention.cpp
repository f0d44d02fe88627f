// Attention with grouped key/value heads, causal or not, in a sliding window, within documents; on separate
// q, k, v and on packed rows q | k | v. Source: Vaswani et al. 2017, arXiv:1706.03762; grouped: Ainslie et
// al. 2023, arXiv:2305.13245.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "ops/attention_reference.h"
#include "ops/operands.h"

namespace plimsoll::ops {
namespace {

// ---- inference
// -----------------------------------------------------------------------------------------------------

constexpr size_t kNoStatistic = 99;

/// The places of the optional operands: documents, and behind them what dropout draws from. `lse`: the place
/// of that statistic in a derivative, any other place else.
void check_common(Operands& in, const OpTypes& t, const Extents& e, size_t doc_start, size_t lse) {
  const int64_t window = t.attrs.i64("window");
  const size_t random = doc_start + 1;
  in.floating({lse}, {doc_start, random}).shaped(doc_start, Shape{e.batch, e.tokens});
  in.shaped(random, Shape{4});
  const bool drops = t.attrs.find("p") != nullptr && t.attrs.find("key") != nullptr;
  in.require(drops == t.has(random), "p and key go with random");
  in.require(!drops || (t.attrs.f64("p") >= 0 && t.attrs.f64("p") < 1), "p must be in [0, 1)");
  in.require(e.heads % e.kv_heads == 0,
             fmt::format("{} heads are no multiple of {} kv heads", e.heads, e.kv_heads));
  in.require(window >= 0, "window must be positive, or 0 for none");
  in.require(std::isfinite(t.attrs.f64("scale")), "scale must be finite");
  in.require(t.attrs.find("precision") == nullptr || t.attrs.str("precision") == "tf32",
             "precision must be tf32");
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
  Operands in(t, 3, {"q", "k", "v", "doc_start", "random"});
  if (in) check_separate(in, t);
  if (!in) return in.error();
  const Extents e = extents_of(t.inputs[0].shape, t.inputs[1].shape);
  check_common(in, t, e, 3, kNoStatistic);
  return in.results({t.inputs[0], {DType::kF32, Shape{e.batch, e.heads, e.tokens}}});
}

Result<Types> infer_attention_grad(const OpTypes& t) {
  Operands in(t, 6, {"q", "k", "v", "out", "lse", "dout", "doc_start", "random"});
  if (in) check_separate(in, t);
  if (!in) return in.error();
  const Shape& q = t.inputs[0].shape;
  const Extents e = extents_of(q, t.inputs[1].shape);
  check_common(in, t, e, 6, 4);
  in.shaped(3, q).shaped(4, Shape{e.batch, e.heads, e.tokens}).shaped(5, q);
  return in.results({t.inputs[0], t.inputs[1], t.inputs[2]});
}

void check_packed(Operands& in, const OpTypes& t) {
  static constexpr int64_t kMaxHeads = int64_t{1} << 20;
  const Shape& qkv = t.inputs[0].shape;
  in.require(qkv.rank() == 3, "qkv must be [B,T,(heads+2*kv_heads)*head_dim]", {0});
  for (const std::string_view name : {"heads", "kv_heads", "head_dim"})
    in.require(t.attrs.i64(name) >= 1 && t.attrs.i64(name) <= kMaxHeads,
               fmt::format("{} out of range", name));
  if (!in) return;
  const Extents e = extents_of(qkv, t.attrs);
  in.require(qkv.dim(2) == e.packed(),
             fmt::format("qkv does not hold {} + 2 * {} heads of {}", e.heads, e.kv_heads, e.head_dim), {0});
}

Result<Types> infer_attention_packed(const OpTypes& t) {
  Operands in(t, 1, {"qkv", "doc_start", "random"});
  if (in) check_packed(in, t);
  if (!in) return in.error();
  const Extents e = extents_of(t.inputs[0].shape, t.attrs);
  check_common(in, t, e, 1, kNoStatistic);
  return in.results({{t.inputs[0].dtype, Shape{e.batch, e.tokens, e.heads * e.head_dim}},
                     {DType::kF32, Shape{e.batch, e.heads, e.tokens}}});
}

Result<Types> infer_attention_packed_grad(const OpTypes& t) {
  Operands in(t, 4, {"qkv", "out", "lse", "dout", "doc_start", "random"});
  if (in) check_packed(in, t);
  if (!in) return in.error();
  const Extents e = extents_of(t.inputs[0].shape, t.attrs);
  const Shape out{e.batch, e.tokens, e.heads * e.head_dim};
  check_common(in, t, e, 4, 2);
  return in.shaped(1, out).shaped(2, Shape{e.batch, e.heads, e.tokens}).shaped(3, out).results({t.inputs[0]});
}

// ---- derivatives
// ---------------------------------------------------------------------------------------------------

void vjp_attention(VjpContext& ctx) {
  const Op op = ctx.op();
  const ValueId dout = ctx.cotangent(0);
  PLIMSOLL_CHECK(!ctx.cotangent(1).valid(), "attention: lse is kept for the derivative and has none itself");
  if (!dout.valid() || (!ctx.wants(0) && !ctx.wants(1) && !ctx.wants(2))) return;
  std::vector<ValueId> inputs = {op.inputs[0],  op.inputs[1],  op.inputs[2],
                                 op.outputs[0], op.outputs[1], dout};
  inputs.insert(inputs.end(), op.inputs.begin() + 3, op.inputs.end());
  const auto grads = ctx.builder().ops("attention_grad", trimmed(std::move(inputs)), op.attrs);
  for (size_t i = 0; i < 3; ++i)
    if (ctx.wants(i)) ctx.add(i, grads[i]);
}

void vjp_attention_packed(VjpContext& ctx) {
  const Op op = ctx.op();
  const ValueId dout = ctx.cotangent(0);
  PLIMSOLL_CHECK(!ctx.cotangent(1).valid(),
                 "attention_packed: lse is kept for the derivative and has none itself");
  if (!dout.valid() || !ctx.wants(0)) return;
  std::vector<ValueId> inputs = {op.inputs[0], op.outputs[0], op.outputs[1], dout};
  inputs.insert(inputs.end(), op.inputs.begin() + 1, op.inputs.end());
  ctx.add(0, ctx.builder().op("attention_packed_grad", trimmed(std::move(inputs)), op.attrs));
}

// ---- cost: two products a visible pair forward, five backward
// --------------------------------------------------------

/// Pairs (i, j) that see each other in a sequence of `tokens`, on both sides of i where not causal.
double visible_pairs(const Extents& e, const ir::Attrs& attrs) {
  const auto tokens = static_cast<double>(e.tokens);
  const int64_t window = attrs.i64("window");
  const auto seen = static_cast<double>(window == 0 ? e.tokens : std::min(window, e.tokens));
  const double one_side = seen * (seen + 1) / 2 + (tokens - seen) * seen;
  return attrs.flag("causal") ? one_side : 2 * one_side - tokens;
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
Cost cost_attention_packed(const OpTypes& t) {
  return attention_cost(t, extents_of(t.inputs[0].shape, t.attrs), 2);
}
Cost cost_attention_packed_grad(const OpTypes& t) {
  return attention_cost(t, extents_of(t.inputs[0].shape, t.attrs), 5);
}

// ---- work
// ----------------------------------------------------------------------------------------------------------

constexpr std::string_view kForwardKey = "attention", kGradKey = "attention_grad";

/// Heads of all sequences, tokens, head_dim.
std::array<double, 3> extents_of_heads(const OpTypes& t) {
  const Shape& q = t.inputs.front().shape;
  const bool is_packed = q.rank() == 3;
  const int64_t heads = is_packed ? t.attrs.i64("heads") : q.dim(-2);
  const int64_t head_dim = is_packed ? t.attrs.i64("head_dim") : q.dim(-1);
  return {static_cast<double>(q.dim(0) * heads), static_cast<double>(q.dim(1)),
          static_cast<double>(head_dim)};
}

WorkSize size_attention(const OpTypes& t, double) { return {kForwardKey, extents_of_heads(t)}; }
WorkSize size_attention_grad(const OpTypes& t, double) { return {kGradKey, extents_of_heads(t)}; }

}  // namespace

OpGroup attention_ops() {
  using enum ir::RecomputeClass;
  using enum ir::AutocastClass;
  const AttrSpec p{"p", AttrSpec::Kind::kFloat, false}, key{"key", AttrSpec::Kind::kInt, false};
  const std::vector<AttrSpec> masks = {float_attr("scale"), bool_attr("causal"), int_attr("window"), p, key,
                                       precision_attr()};
  const std::vector<AttrSpec> rows = {int_attr("heads"),
                                      int_attr("kv_heads"),
                                      int_attr("head_dim"),
                                      float_attr("scale"),
                                      bool_attr("causal"),
                                      int_attr("window"),
                                      p,
                                      key,
                                      precision_attr()};
  const ir::Work forward = {.kind = WorkKind::kAttention, .keys = {kForwardKey}, .size = size_attention},
                 grad = {.kind = WorkKind::kAttention, .keys = {kGradKey}, .size = size_attention_grad};
  static const std::vector<OpDef> kOps = {
      {.name = "attention",
       .summary = "softmax(scale * q k^T) v",
       .work = forward,
       .min_inputs = 3,
       .max_inputs = 5,
       .attrs = masks,
       .infer = infer_attention,
       .vjp = vjp_attention,
       .cost = cost_attention,
       .reference = reference_attention,
       .autocast = kLowPrecision,
       .recompute = kCompute,
       .random = 4},
      {.name = "attention_grad",
       .summary = "cotangents of q, k and v",
       .work = grad,
       .min_inputs = 6,
       .max_inputs = 8,
       .attrs = masks,
       .infer = infer_attention_grad,
       .cost = cost_attention_grad,
       .reference = reference_attention_grad,
       .autocast = kLowPrecision,
       .recompute = kCompute,
       .random = 7},
      {.name = "attention_packed",
       .summary = "attention on rows q | k | v",
       .work = forward,
       .min_inputs = 1,
       .max_inputs = 3,
       .attrs = rows,
       .infer = infer_attention_packed,
       .vjp = vjp_attention_packed,
       .cost = cost_attention_packed,
       .reference = reference_attention_packed,
       .autocast = kLowPrecision,
       .recompute = kCompute,
       .random = 2},
      {.name = "attention_packed_grad",
       .summary = "cotangent of the rows",
       .work = grad,
       .min_inputs = 4,
       .max_inputs = 6,
       .attrs = rows,
       .infer = infer_attention_packed_grad,
       .cost = cost_attention_packed_grad,
       .reference = reference_attention_packed_grad,
       .autocast = kLowPrecision,
       .recompute = kCompute,
       .random = 5},
  };
  return kOps;
}

Attention attention(Builder& b, ValueId q, ValueId k, ValueId v, ValueId doc_start,
                    const AttentionOptions& options, ValueId random) {
  ir::Attrs attrs{{"scale", options.scale}, {"causal", options.causal}, {"window", options.window}};
  const bool drops = random.valid() && options.dropout > 0;
  if (drops) attrs.set("p", options.dropout);
  if (drops) attrs.set("key", options.key);
  const auto results =
      b.ops("attention", trimmed({q, k, v, doc_start, drops ? random : ValueId{}}), std::move(attrs));
  return {results[0], results[1]};
}

}  // namespace plimsoll::ops
