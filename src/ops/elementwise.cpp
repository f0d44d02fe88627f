// Elementwise arithmetic and the activations silu and gelu, each with its derivative.
#include <cmath>
#include <numbers>
#include <string>

#include "ops/activation_math.h"
#include "ops/gelu.h"
#include "ops/operands.h"

namespace plimsoll::ops {
namespace {

// ---- two operands of one shape
// -----------------------------------------------------------------------------------

Operands check_pair(const OpTypes& t, std::vector<std::string_view> names) {
  Operands in(t, 2, std::move(names));
  if (in) in.floating().require(t.inputs[0].shape == t.inputs[1].shape, "shapes differ", {0, 1});
  return in;
}
Result<Types> infer_binary(const OpTypes& t) {
  Operands in = check_pair(t, {"x", "y"});
  if (!in) return in.error();
  return in.results({{widest(t.inputs[0].dtype, t.inputs[1].dtype), t.inputs[0].shape}});
}
Result<Types> infer_unary_grad(const OpTypes& t) {
  Operands in = check_pair(t, {"dy", "x"});
  return in ? in.results({t.inputs[1]}) : in.error();
}

void vjp_add(VjpContext& ctx) {
  const ValueId dy = ctx.cotangent(0);
  if (!dy.valid()) return;
  for (size_t i = 0; i < 2; ++i)
    if (ctx.wants(i)) ctx.add(i, dy);
}

void vjp_mul(VjpContext& ctx) {
  const Op op = ctx.op();
  const ValueId dy = ctx.cotangent(0);
  if (!dy.valid()) return;
  for (size_t i = 0; i < 2; ++i)
    if (ctx.wants(i)) ctx.add(i, mul(ctx.builder(), dy, op.inputs[1 - i]));
}

void reference_add(RefContext& ctx) {
  for (size_t i = 0; i < ctx.outputs[0]->data.size(); ++i)
    ctx.outputs[0]->data[i] = ctx.inputs[0]->data[i] + ctx.inputs[1]->data[i];
}

void reference_mul(RefContext& ctx) {
  for (size_t i = 0; i < ctx.outputs[0]->data.size(); ++i)
    ctx.outputs[0]->data[i] = ctx.inputs[0]->data[i] * ctx.inputs[1]->data[i];
}

// ---- scale and bias
// ----------------------------------------------------------------------------------------------

Result<Types> infer_scale(const OpTypes& t) {
  Operands in(t, 2, {"x", "s"});
  if (!in) return in.error();
  in.floating({1}).shaped(1, Shape{1});
  return in.results({t.inputs[0]});
}

void vjp_scale(VjpContext& ctx) {
  const Op op = ctx.op();
  Builder& b = ctx.builder();
  const ValueId dy = ctx.cotangent(0);
  if (!dy.valid()) return;
  if (ctx.wants(0)) ctx.add(0, scale(b, dy, op.inputs[1]));
  if (ctx.wants(1)) {
    const ValueId products = mul(b, dy, op.inputs[0]);
    ctx.add(1, b.op("sum_rows", {reshape(b, products, {b.type(products).num_elements(), 1})}));
  }
}

void reference_scale(RefContext& ctx) {
  for (size_t i = 0; i < ctx.outputs[0]->data.size(); ++i)
    ctx.outputs[0]->data[i] = ctx.inputs[0]->data[i] * ctx.inputs[1]->data[0];
}

Result<Types> infer_bias_add(const OpTypes& t) {
  Operands in(t, 2, {"x", "bias"});
  if (!in) return in.error();
  in.floating().shaped(1, Shape{t.inputs[0].shape.dim(-1)});
  return in.results({t.inputs[0]});
}

void vjp_bias_add(VjpContext& ctx) {
  const ValueId dy = ctx.cotangent(0);
  if (!dy.valid()) return;
  if (ctx.wants(0)) ctx.add(0, dy);
  if (ctx.wants(1)) ctx.add(1, ctx.builder().op("sum_rows", {dy}));
}

void reference_bias_add(RefContext& ctx) {
  const auto& bias = ctx.inputs[1]->data;
  for (size_t i = 0; i < ctx.outputs[0]->data.size(); ++i)
    ctx.outputs[0]->data[i] = ctx.inputs[0]->data[i] + bias[i % bias.size()];
}

// ---- activations
// -------------------------------------------------------------------------------------------------

Result<Types> infer_silu(const OpTypes& t) {
  Operands in(t, 1, {"x"});
  if (!in) return in.error();
  return in.floating().results({t.inputs[0]});
}

Result<Types> infer_gelu(const OpTypes& t) {
  Operands in(t, 1, {"x"});
  if (!in) return in.error();
  check_gelu(in.floating(), t);
  return in.results({t.inputs[0]});
}

Result<Types> infer_gelu_grad(const OpTypes& t) {
  auto types = infer_unary_grad(t);
  Operands in(t, 2, {"dy", "x"});
  if (types && in) check_gelu(in, t);
  return !types || in ? types : in.error();
}

void vjp_activation(VjpContext& ctx, std::string_view grad) {
  const Op op = ctx.op();
  const ValueId dy = ctx.cotangent(0);
  if (dy.valid() && ctx.wants(0)) ctx.add(0, ctx.builder().op(grad, {dy, op.inputs[0]}, op.attrs));
}
void vjp_silu(VjpContext& ctx) { vjp_activation(ctx, "silu_grad"); }
void vjp_gelu(VjpContext& ctx) { vjp_activation(ctx, "gelu_grad"); }

void reference_silu(RefContext& ctx) {
  for (size_t i = 0; i < ctx.outputs[0]->data.size(); ++i)
    ctx.outputs[0]->data[i] = silu_value(ctx.inputs[0]->data[i]);
}
void reference_silu_grad(RefContext& ctx) {
  for (size_t i = 0; i < ctx.outputs[0]->data.size(); ++i)
    ctx.outputs[0]->data[i] = ctx.inputs[0]->data[i] * silu_slope(ctx.inputs[1]->data[i]);
}
void reference_gelu(RefContext& ctx) {
  const GeluForm& form = gelu_form(ctx.op.attrs);
  for (size_t i = 0; i < ctx.outputs[0]->data.size(); ++i)
    ctx.outputs[0]->data[i] = form.value(ctx.inputs[0]->data[i]);
}
void reference_gelu_grad(RefContext& ctx) {
  const GeluForm& form = gelu_form(ctx.op.attrs);
  for (size_t i = 0; i < ctx.outputs[0]->data.size(); ++i)
    ctx.outputs[0]->data[i] = ctx.inputs[0]->data[i] * form.slope(ctx.inputs[1]->data[i]);
}

}  // namespace

OpGroup elementwise_ops() {
  using enum ir::RecomputeClass;
  using enum ir::AutocastClass;
  static const std::vector<OpDef> kOps = {
      {.name = "add",
       .summary = "x + y",
       .work = {WorkKind::kElementwise},
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_binary,
       .vjp = vjp_add,
       .cost = elementwise_cost<1>,
       .reference = reference_add,
       .autocast = kWidest,
       .recompute = kNearlyFree,
       .in_place = {{0, 0}, {0, 1}}},
      {.name = "mul",
       .summary = "x * y",
       .work = {WorkKind::kElementwise},
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_binary,
       .vjp = vjp_mul,
       .cost = elementwise_cost<1>,
       .reference = reference_mul,
       .autocast = kWidest,
       .recompute = kNearlyFree,
       .in_place = {{0, 0}, {0, 1}}},
      {.name = "scale",
       .summary = "x times a run-time scalar",
       .work = {WorkKind::kElementwise},
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_scale,
       .vjp = vjp_scale,
       .cost = elementwise_cost<1>,
       .reference = reference_scale,
       .recompute = kNearlyFree,
       .in_place = {{0, 0}}},
      {.name = "bias_add",
       .summary = "x + bias over the last axis",
       .work = {WorkKind::kElementwise},
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_bias_add,
       .vjp = vjp_bias_add,
       .cost = elementwise_cost<1>,
       .reference = reference_bias_add,
       .recompute = kNearlyFree,
       .in_place = {{0, 0}}},
      {.name = "silu",
       .summary = "x * sigmoid(x)",
       .work = {WorkKind::kElementwise},
       .min_inputs = 1,
       .max_inputs = 1,
       .infer = infer_silu,
       .vjp = vjp_silu,
       .cost = elementwise_cost<10>,
       .reference = reference_silu,
       .recompute = kNearlyFree,
       .in_place = {{0, 0}}},
      {.name = "silu_grad",
       .summary = "dy times the slope of silu",
       .work = {WorkKind::kElementwise},
       .min_inputs = 2,
       .max_inputs = 2,
       .infer = infer_unary_grad,
       .cost = elementwise_cost<14>,
       .reference = reference_silu_grad,
       .recompute = kNearlyFree,
       .in_place = {{0, 0}, {0, 1}}},
      {.name = "gelu",
       .summary = "x * Phi(x)",
       .work = {WorkKind::kElementwise},
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = {string_attr("approximate")},
       .infer = infer_gelu,
       .vjp = vjp_gelu,
       .cost = elementwise_cost<16>,
       .reference = reference_gelu,
       .recompute = kNearlyFree,
       .in_place = {{0, 0}}},
      {.name = "gelu_grad",
       .summary = "dy times the slope of gelu",
       .work = {WorkKind::kElementwise},
       .min_inputs = 2,
       .max_inputs = 2,
       .attrs = {string_attr("approximate")},
       .infer = infer_gelu_grad,
       .cost = elementwise_cost<24>,
       .reference = reference_gelu_grad,
       .recompute = kNearlyFree,
       .in_place = {{0, 0}, {0, 1}}},
  };
  return kOps;
}

ValueId add(Builder& b, ValueId x, ValueId y) { return b.op("add", {x, y}); }
ValueId mul(Builder& b, ValueId x, ValueId y) { return b.op("mul", {x, y}); }
ValueId scale(Builder& b, ValueId x, ValueId s) { return b.op("scale", {x, s}); }
ValueId bias_add(Builder& b, ValueId x, ValueId bias) { return b.op("bias_add", {x, bias}); }
ValueId silu(Builder& b, ValueId x) { return b.op("silu", {x}); }
ValueId gelu(Builder& b, ValueId x, Gelu form) {
  return b.op("gelu", {x}, {{"approximate", std::string(gelu_form(form).approximate)}});
}

}  // namespace plimsoll::ops
