// RMS norms of each head of queries and keys, then the rotation, on packed rows q | k | v: what Qwen3 does
// between projection and attention, in one op. The norms' granules are those of the separate ops, rows of
// heads counted over the tokens of a sequence, so that the bits are theirs.
#include <fmt/format.h>

#include <cmath>

#include "base/check.h"
#include "ops/operands.h"

namespace plimsoll::ops {
namespace {

/// How a packed row is made up.
struct Packing {
  int64_t heads, kv_heads, head_dim;
  explicit Packing(const ir::Attrs& attrs)
      : heads(attrs.i64("heads")), kv_heads(attrs.i64("kv_heads")), head_dim(attrs.i64("head_dim")) {}
  [[nodiscard]] int64_t width() const { return (heads + 2 * kv_heads) * head_dim; }
};

/// Operands from `qkv` on: qkv, q_weight, k_weight, table; behind them the statistics.
void check_packed(Operands& in, const OpTypes& t, size_t qkv) {
  static constexpr int64_t kMaxHeads = int64_t{1} << 20;
  for (const std::string_view name : {"heads", "kv_heads", "head_dim"})
    in.require(t.attrs.i64(name) >= 1 && t.attrs.i64(name) <= kMaxHeads,
               fmt::format("{} out of range", name));
  const Shape& x = t.inputs[qkv].shape;
  const Shape& table = t.inputs[qkv + 3].shape;
  in.floating({qkv + 3, qkv + 4, qkv + 5})
      .require(x.rank() == 3, "qkv must be [B,T,(heads+2*kv_heads)*head_dim]", {qkv});
  if (!in) return;
  const Packing p(t.attrs);
  in.require(x.dim(2) == p.width(),
             fmt::format("qkv does not hold {} + 2 * {} heads of {}", p.heads, p.kv_heads, p.head_dim),
             {qkv});
  in.shaped(qkv + 1, Shape{p.head_dim}).shaped(qkv + 2, Shape{p.head_dim});
  in.require(table.rank() == 3 && (table.dim(0) == x.dim(0) || table.dim(0) == 1) &&
                 table.dim(1) == x.dim(1) && table.dim(2) == p.head_dim && p.head_dim % 2 == 0,
             fmt::format("table must be [B or 1, T, {}], an even head size", p.head_dim), {qkv, qkv + 3});
}

Result<Types> infer_qk_norm_rope(const OpTypes& t) {
  Operands in(t, 4, {"qkv", "q_weight", "k_weight", "table"});
  if (in) check_packed(in, t, 0);
  if (!in) return in.error();
  const Shape& x = t.inputs[0].shape;
  const Packing p(t.attrs);
  return in.results({t.inputs[0],
                     {DType::kF32, Shape{x.dim(0), x.dim(1), p.heads}},
                     {DType::kF32, Shape{x.dim(0), x.dim(1), p.kv_heads}}});
}

Result<Types> infer_qk_norm_rope_grad(const OpTypes& t) {
  Operands in(
      t, 7,
      {"dy", "qkv", "q_weight", "k_weight", "table", "q_rstd", "k_rstd", "acc_dq_weight", "acc_dk_weight"});
  if (in) check_packed(in, t, 1);
  if (!in) return in.error();
  const Shape& x = t.inputs[1].shape;
  const Packing p(t.attrs);
  in.shaped(0, x).shaped(5, Shape{x.dim(0), x.dim(1), p.heads});
  in.shaped(6, Shape{x.dim(0), x.dim(1), p.kv_heads});
  in.shaped(7, Shape{p.head_dim}).shaped(8, Shape{p.head_dim});
  const DType dw = dw_dtype(in, t, t.inputs[2].dtype);
  const TensorType weight{dw, Shape{p.head_dim}};
  return in.same_dtype(7, dw).same_dtype(8, dw).results({t.inputs[1], weight, weight});
}

void vjp_qk_norm_rope(VjpContext& ctx) {
  const Op op = ctx.op();
  const ValueId dy = ctx.cotangent(0);
  PLIMSOLL_CHECK(!ctx.cotangent(1).valid() && !ctx.cotangent(2).valid(),
                 "qk_norm_rope: rstd is kept for the derivative and has none itself");
  if (!dy.valid() || (!ctx.wants(0) && !ctx.wants(1) && !ctx.wants(2))) return;
  const auto grads = ctx.builder().ops(
      "qk_norm_rope_grad",
      {dy, op.inputs[0], op.inputs[1], op.inputs[2], op.inputs[3], op.outputs[1], op.outputs[2]}, op.attrs);
  for (size_t i = 0; i < 3; ++i)
    if (ctx.wants(i)) ctx.add(i, grads[i]);
}

// ---- references
// --------------------------------------------------------------------------------------------------

/// The heads of one norm within the packed rows: `count` from head `first` on.
struct HeadsOf {
  size_t first, count, packed, head_dim;
  [[nodiscard]] size_t place(size_t token, size_t head) const {
    return (token * packed + first + head) * head_dim;
  }
};

HeadsOf heads_of(const ir::Attrs& attrs, bool keys) {
  const Packing p(attrs);
  return {keys ? at(p.heads) : 0, at(keys ? p.kv_heads : p.heads), at(p.heads + 2 * p.kv_heads),
          at(p.head_dim)};
}

/// Angles of a token: head_dim/2 cosines, then as many sines.
const double* angles_of(const RefTensor& table, size_t token) {
  return &table.data[token % at(table.type.shape.num_rows()) * at(table.type.shape.dim(2))];
}

void normalise_and_turn(const RefTensor& x, const RefTensor& weight, const RefTensor& table, double eps,
                        const HeadsOf& heads, RefTensor& y, RefTensor& rstd) {
  const size_t half = heads.head_dim / 2;
  for (size_t row = 0; row < rstd.data.size(); ++row) {
    const size_t token = row / heads.count, place = heads.place(token, row % heads.count);
    double squares = 0;
    for (size_t i = 0; i < 2 * half; ++i) squares += x.data[place + i] * x.data[place + i];
    rstd.data[row] = 1.0 / std::sqrt(squares / static_cast<double>(2 * half) + eps);
    const auto normed = [&](size_t i) { return x.data[place + i] * rstd.data[row] * weight.data[i]; };
    const double* angle = angles_of(table, token);
    for (size_t i = 0; i < half; ++i) {
      y.data[place + i] = normed(i) * angle[i] - normed(half + i) * angle[half + i];
      y.data[place + half + i] = normed(half + i) * angle[i] + normed(i) * angle[half + i];
    }
  }
}

void reference_qk_norm_rope(RefContext& ctx) {
  const double eps = ctx.op.attrs.f64("eps");
  ctx.outputs[0]->data = ctx.inputs[0]->data;
  for (const size_t k : {size_t{0}, size_t{1}})
    normalise_and_turn(*ctx.inputs[0], *ctx.inputs[1 + k], *ctx.inputs[3], eps,
                       heads_of(ctx.op.attrs, k == 1), *ctx.outputs[0], *ctx.outputs[1 + k]);
}

/// One norm's part of dx, and its weight's gradient on top of what `dw` holds.
void differentiate(const RefContext& ctx, bool keys, RefTensor& dx, RefTensor& dw) {
  const HeadsOf heads = heads_of(ctx.op.attrs, keys);
  const auto& dy = ctx.inputs[0]->data;
  const auto& x = ctx.inputs[1]->data;
  const auto& weight = ctx.inputs[keys ? 3 : 2]->data;
  const auto& rstd = ctx.inputs[keys ? 6 : 5]->data;
  const size_t width = heads.head_dim, half = width / 2;
  std::vector<double> turned(width);
  for (size_t row = 0; row < rstd.size(); ++row) {
    const size_t token = row / heads.count, place = heads.place(token, row % heads.count);
    const double* angle = angles_of(*ctx.inputs[4], token);
    for (size_t i = 0; i < half; ++i) {
      turned[i] = dy[place + i] * angle[i] + dy[place + half + i] * angle[half + i];
      turned[half + i] = dy[place + half + i] * angle[i] - dy[place + i] * angle[half + i];
    }
    double mean = 0;
    for (size_t i = 0; i < width; ++i)
      mean += turned[i] * weight[i] * x[place + i] * rstd[row] / static_cast<double>(width);
    for (size_t i = 0; i < width; ++i) {
      const double xhat = x[place + i] * rstd[row];
      dx.data[place + i] = rstd[row] * (turned[i] * weight[i] - xhat * mean);
      dw.data[i] += turned[i] * xhat;
    }
  }
}

void reference_qk_norm_rope_grad(RefContext& ctx) {
  ctx.outputs[0]->data = ctx.inputs[0]->data;  // v's cotangent goes through
  for (const size_t k : {size_t{0}, size_t{1}}) {
    RefTensor& dw = *ctx.outputs[1 + k];
    if (ctx.inputs.size() > 7 + k && ctx.inputs[7 + k] != nullptr) dw.data = ctx.inputs[7 + k]->data;
    differentiate(ctx, k == 1, *ctx.outputs[0], dw);
  }
}

}  // namespace

OpGroup qk_norm_ops() {
  using enum ir::RecomputeClass;
  using enum ir::AutocastClass;
  const std::vector<AttrSpec> rows = {int_attr("heads"), int_attr("kv_heads"), int_attr("head_dim"),
                                      float_attr("eps")};
  std::vector<AttrSpec> rows_grad = rows;
  rows_grad.push_back(dw_attr());
  static const std::vector<OpDef> kOps = {
      {.name = "qk_norm_rope",
       .summary = "norms and turns the heads of q and k in packed rows",
       .work = {WorkKind::kReduction},
       .min_inputs = 4,
       .max_inputs = 4,
       .attrs = rows,
       .infer = infer_qk_norm_rope,
       .vjp = vjp_qk_norm_rope,
       .cost = elementwise_cost<7>,
       .reference = reference_qk_norm_rope,
       .autocast = kF32,
       .recompute = kNearlyFree,
       .in_place = {{0, 0}}},
      {.name = "qk_norm_rope_grad",
       .summary = "cotangents of qkv and of both weights",
       .work = {WorkKind::kReduction},
       .min_inputs = 7,
       .max_inputs = 9,
       .attrs = rows_grad,
       .infer = infer_qk_norm_rope_grad,
       .cost = elementwise_cost<13>,
       .reference = reference_qk_norm_rope_grad,
       .autocast = kF32,
       .recompute = kNearlyFree,
       .accumulators = {{1, 7}, {2, 8}},
       .in_place = {{0, 0}},
       .output_dtypes = {{1, "dw", 2}, {2, "dw", 3}}},
  };
  return kOps;
}

}  // namespace plimsoll::ops
