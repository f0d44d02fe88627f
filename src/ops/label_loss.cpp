// Losses against float labels: binary cross-entropy of logits, and squared error. Each is a mean over the
// labels of a row, summed over the rows that have labels.
#include <cmath>

#include "ops/operands.h"

namespace plimsoll::ops {
namespace {

Result<Types> infer_loss(const OpTypes& t) {
  Operands in(t, 3, {"logits", "labels", "grad_scale", "acc"});
  if (!in) return in.error();
  in.floating({1, 2, 3}).shaped(1, t.inputs[0].shape).shaped(2, Shape{1}).shaped(3, Shape{1});
  return in.results({{DType::kF32, Shape{1}}});
}

Result<Types> infer_loss_grad(const OpTypes& t) {
  Operands in(t, 3, {"logits", "labels", "grad_scale"});
  if (!in) return in.error();
  in.floating({1, 2}).shaped(1, t.inputs[0].shape).shaped(2, Shape{1});
  return in.results({t.inputs[0]});
}

/// By contract the loss's cotangent is grad_scale: the op's operand stands for it.
void vjp_loss(VjpContext& ctx, std::string_view grad) {
  const Op op = ctx.op();
  if (!ctx.cotangent(0).valid()) return;
  if (ctx.wants(0)) ctx.add(0, ctx.builder().op(grad, {op.inputs[0], op.inputs[1], op.inputs[2]}));
  if (op.inputs.size() > 3 && op.inputs[3].valid() && ctx.wants(3)) ctx.add(3, ctx.cotangent(0));
}

/// log(1 + exp(x)) - y x, without overflow.
double bce(double x, double y) { return std::max(x, 0.0) - x * y + std::log1p(std::exp(-std::abs(x))); }
double bce_slope(double x, double y) { return 1.0 / (1.0 + std::exp(-x)) - y; }
double squared(double x, double y) { return (x - y) * (x - y); }
double squared_slope(double x, double y) { return 2.0 * (x - y); }

template <double (*kLoss)(double, double)>
void reference_loss(RefContext& ctx) {
  const auto &x = ctx.inputs[0]->data, &y = ctx.inputs[1]->data;
  const size_t labels = at(ctx.inputs[0]->type.shape.dim(-1));
  double& loss = ctx.outputs[0]->data[0];
  if (ctx.inputs.size() > 3 && ctx.inputs[3] != nullptr) loss = ctx.inputs[3]->data[0];
  for (size_t row = 0; row < x.size(); row += labels) {
    if (!has_labels(y[row])) continue;
    double sum = 0;
    for (size_t i = row; i < row + labels; ++i) sum += kLoss(x[i], y[i]);
    loss += sum / static_cast<double>(labels);
  }
}

template <double (*kSlope)(double, double)>
void reference_loss_grad(RefContext& ctx) {
  const auto &x = ctx.inputs[0]->data, &y = ctx.inputs[1]->data;
  const size_t labels = at(ctx.inputs[0]->type.shape.dim(-1));
  const double scale = ctx.inputs[2]->data[0] / static_cast<double>(labels);
  for (size_t i = 0; i < x.size(); ++i)
    ctx.outputs[0]->data[i] = has_labels(y[i / labels * labels]) ? kSlope(x[i], y[i]) * scale : 0.0;
}

Cost cost_loss(const OpTypes& t) {
  return cost_of(t, 12.0 * static_cast<double>(t.inputs[0].num_elements()));
}

OpDef loss_def(std::string_view name, std::string_view summary, void (*vjp)(VjpContext&),
               void (*reference)(RefContext&)) {
  return {.name = name,
          .summary = summary,
          .work = {WorkKind::kReduction},
          .min_inputs = 3,
          .max_inputs = 4,
          .infer = infer_loss,
          .vjp = vjp,
          .cost = cost_loss,
          .reference = reference,
          .autocast = ir::AutocastClass::kF32,
          .recompute = ir::RecomputeClass::kNearlyFree,
          .accumulators = {{0, 3}},
          .is_loss = true};
}

OpDef grad_def(std::string_view name, std::string_view summary, void (*reference)(RefContext&)) {
  return {.name = name,
          .summary = summary,
          .work = {WorkKind::kElementwise},
          .min_inputs = 3,
          .max_inputs = 3,
          .infer = infer_loss_grad,
          .cost = cost_loss,
          .reference = reference,
          .autocast = ir::AutocastClass::kF32,
          .recompute = ir::RecomputeClass::kNearlyFree,
          .in_place = {{0, 0}}};
}

}  // namespace

OpGroup label_loss_ops() {
  static const std::vector<OpDef> kOps = {
      loss_def(
          "bce_with_logits", "sum of log(1 + exp(x)) - y x, a mean over labels",
          [](VjpContext& ctx) { vjp_loss(ctx, "bce_with_logits_grad"); }, reference_loss<bce>),
      grad_def("bce_with_logits_grad", "(sigmoid - y) * grad_scale / labels", reference_loss_grad<bce_slope>),
      loss_def(
          "squared_error", "sum of (x - y)^2, a mean over outputs",
          [](VjpContext& ctx) { vjp_loss(ctx, "squared_error_grad"); }, reference_loss<squared>),
      grad_def("squared_error_grad", "2 (x - y) * grad_scale / outputs", reference_loss_grad<squared_slope>),
  };
  return kOps;
}

ValueId bce_with_logits(Builder& b, ValueId logits, ValueId labels, ValueId grad_scale, ValueId acc) {
  return b.op("bce_with_logits", trimmed({logits, labels, grad_scale, acc}));
}

ValueId squared_error(Builder& b, ValueId prediction, ValueId labels, ValueId grad_scale, ValueId acc) {
  return b.op("squared_error", trimmed({prediction, labels, grad_scale, acc}));
}

}  // namespace plimsoll::ops
