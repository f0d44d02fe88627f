// Fused activations: the gated silu of Llama's MLP and the biased gelu of GPT-2's.
#include <cmath>
#include <string>

#include "ops/activation_math.h"
#include "ops/gelu.h"
#include "ops/operands.h"

namespace plimsoll::ops {
namespace {

// ---- swiglu: rows of gate (F) then up (F)
// ------------------------------------------------------------------------

Result<Types> infer_swiglu(const OpTypes& t) {
  Operands in(t, 1, {"gate_up"});
  if (!in) return in.error();
  const Shape& x = t.inputs[0].shape;
  in.floating().require(x.dim(-1) % 2 == 0, "the last axis is not gate and up side by side", {0});
  return in.results({{t.inputs[0].dtype, with_last(x, std::max<int64_t>(x.dim(-1) / 2, 1))}});
}

Result<Types> infer_swiglu_grad(const OpTypes& t) {
  Operands in(t, 2, {"dy", "gate_up"});
  if (!in) return in.error();
  const Shape& dy = t.inputs[0].shape;
  in.floating().shaped(1, with_last(dy, 2 * dy.dim(-1)));
  return in.results({t.inputs[1]});
}

void vjp_swiglu(VjpContext& ctx) {
  const Op op = ctx.op();
  const ValueId dy = ctx.cotangent(0);
  if (dy.valid() && ctx.wants(0)) ctx.add(0, ctx.builder().op("swiglu_grad", {dy, op.inputs[0]}));
}

void reference_swiglu(RefContext& ctx) {
  const auto& x = ctx.inputs[0]->data;
  const int64_t width = ctx.outputs[0]->type.shape.dim(-1);
  for (int64_t i = 0; i < ctx.outputs[0]->type.num_elements(); ++i) {
    const int64_t gate = i / width * 2 * width + i % width;
    ctx.outputs[0]->data[at(i)] = silu_value(x[at(gate)]) * x[at(gate + width)];
  }
}

void reference_swiglu_grad(RefContext& ctx) {
  const auto& dy = ctx.inputs[0]->data;
  const auto& x = ctx.inputs[1]->data;
  const int64_t width = ctx.inputs[0]->type.shape.dim(-1);
  for (int64_t i = 0; i < ctx.inputs[0]->type.num_elements(); ++i) {
    const int64_t gate = i / width * 2 * width + i % width;
    const int64_t up = gate + width;
    ctx.outputs[0]->data[at(gate)] = dy[at(i)] * x[at(up)] * silu_slope(x[at(gate)]);
    ctx.outputs[0]->data[at(up)] = dy[at(i)] * silu_value(x[at(gate)]);
  }
}

Cost cost_swiglu_grad(const OpTypes& t) {
  return cost_of(t, 16.0 * static_cast<double>(t.inputs[0].num_elements()));
}

// ---- bias_gelu
// ---------------------------------------------------------------------------------------------------

Result<Types> infer_bias_gelu(const OpTypes& t) {
  Operands in(t, 2, {"x", "bias"});
  if (!in) return in.error();
  in.floating().shaped(1, Shape{t.inputs[0].shape.dim(-1)});
  check_gelu(in, t);
  return in.results({t.inputs[0]});
}

Result<Types> infer_bias_gelu_grad(const OpTypes& t) {
  Operands in(t, 3, {"dy", "x", "bias"});
  if (!in) return in.error();
  in.floating().shaped(1, t.inputs[0].shape).shaped(2, Shape{t.inputs[0].shape.dim(-1)});
  check_gelu(in, t);
  return in.results({t.inputs[1]});
}

void vjp_bias_gelu(VjpContext& ctx) {
  const Op op = ctx.op();
  Builder& b = ctx.builder();
  const ValueId dy = ctx.cotangent(0);
  if (!dy.valid() || (!ctx.wants(0) && !ctx.wants(1))) return;
  const ValueId d = b.op("bias_gelu_grad", {dy, op.inputs[0], op.inputs[1]}, op.attrs);
  if (ctx.wants(0)) ctx.add(0, d);
  if (ctx.wants(1)) ctx.add(1, b.op("sum_rows", {d}));
}

void reference_bias_gelu(RefContext& ctx) {
  const GeluForm& form = gelu_form(ctx.op.attrs);
  const auto& bias = ctx.inputs[1]->data;
  for (size_t i = 0; i < ctx.outputs[0]->data.size(); ++i)
    ctx.outputs[0]->data[i] = form.value(ctx.inputs[0]->data[i] + bias[i % bias.size()]);
}

void reference_bias_gelu_grad(RefContext& ctx) {
  const GeluForm& form = gelu_form(ctx.op.attrs);
  const auto& bias = ctx.inputs[2]->data;
  for (size_t i = 0; i < ctx.outputs[0]->data.size(); ++i)
    ctx.outputs[0]->data[i] =
        ctx.inputs[0]->data[i] * form.slope(ctx.inputs[1]->data[i] + bias[i % bias.size()]);
}

}  // namespace

OpGroup activation_ops() {
  using enum ir::RecomputeClass;
  static const std::vector<OpDef> kOps = {
      {.name = "swiglu",
       .summary = "silu(gate) * up",
       .work = {WorkKind::kElementwise},
       .min_inputs = 1,
       .max_inputs = 1,
       .infer = infer_swiglu,
       .vjp = vjp_swiglu,
       .cost = elementwise_cost<11>,
       .reference = reference_swiglu,
       .recompute = kNearlyFree},
      // Each pair (gate, up) is read whole before it is written.
      {.name = "swiglu_grad",
       .summary = "cotangent of gate_up",
       .work = {WorkKind::kElementwise},
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_swiglu_grad,
       .cost = cost_swiglu_grad,
       .reference = reference_swiglu_grad,
       .recompute = kNearlyFree,
       .in_place = {{0, 1}}},
      {.name = "bias_gelu",
       .summary = "gelu(x + bias)",
       .work = {WorkKind::kElementwise},
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = {string_attr("approximate")},
       .infer = infer_bias_gelu,
       .vjp = vjp_bias_gelu,
       .cost = elementwise_cost<17>,
       .reference = reference_bias_gelu,
       .recompute = kNearlyFree,
       .in_place = {{0, 0}}},
      {.name = "bias_gelu_grad",
       .summary = "cotangent of x + bias",
       .work = {WorkKind::kElementwise},
       .min_inputs = 3,
       .max_inputs = 3,
       .attrs = {string_attr("approximate")},
       .infer = infer_bias_gelu_grad,
       .cost = elementwise_cost<25>,
       .reference = reference_bias_gelu_grad,
       .recompute = kNearlyFree,
       .in_place = {{0, 0}, {0, 1}}},
  };
  return kOps;
}

ValueId swiglu(Builder& b, ValueId gate_up) { return b.op("swiglu", {gate_up}); }
ValueId bias_gelu(Builder& b, ValueId x, ValueId bias, Gelu form) {
  return b.op("bias_gelu", {x, bias}, {{"approximate", std::string(gelu_form(form).approximate)}});
}

}  // namespace plimsoll::ops
