// Cross-entropy summed over the tokens that count.
#include "ops/cross_entropy_math.h"
#include "ops/operands.h"

namespace plimsoll::ops {
namespace {

Result<Types> infer_cross_entropy(const OpTypes& t) {
  Operands in(t, 2, {"logits", "targets", "grad_scale", "acc"});
  if (!in) return in.error();
  const Shape rows = without_last(t.inputs[0].shape);
  in.floating({2, 3}, {1}).shaped(1, rows).shaped(2, Shape{1}).shaped(3, Shape{1});
  return in.results({{DType::kF32, Shape{1}}, {DType::kF32, rows}});
}

Result<Types> infer_cross_entropy_grad(const OpTypes& t) {
  Operands in(t, 4, {"logits", "targets", "lse", "grad_scale"});
  if (!in) return in.error();
  const Shape rows = without_last(t.inputs[0].shape);
  in.floating({2, 3}, {1}).shaped(1, rows).shaped(2, rows).shaped(3, Shape{1});
  return in.results({t.inputs[0]});
}

/// By contract the loss's cotangent is grad_scale: the op's operand stands for it where it has one.
void vjp_cross_entropy(VjpContext& ctx) {
  const Op op = ctx.op();
  if (!ctx.cotangent(0).valid()) return;
  const bool has_scale = op.inputs.size() > 2 && op.inputs[2].valid();
  const ValueId scale = has_scale ? op.inputs[2] : ctx.cotangent(0);
  if (ctx.wants(0))
    ctx.add(0, ctx.builder().op("cross_entropy_grad", {op.inputs[0], op.inputs[1], op.outputs[1], scale}));
  if (op.inputs.size() > 3 && op.inputs[3].valid() && ctx.wants(3)) ctx.add(3, ctx.cotangent(0));
}

void reference_cross_entropy(RefContext& ctx) {
  const auto& logits = ctx.inputs[0]->data;
  const auto& targets = ctx.inputs[1]->data;
  const size_t classes = at(ctx.inputs[0]->type.shape.dim(-1));
  double& loss = ctx.outputs[0]->data[0];
  if (ctx.inputs.size() > 3 && ctx.inputs[3] != nullptr) loss = ctx.inputs[3]->data[0];
  for (size_t row = 0; row < targets.size(); ++row) {
    const double lse = log_sum_exp(&logits[row * classes], classes);
    ctx.outputs[1]->data[row] = lse;
    if (counts(targets[row])) loss += lse - logits[row * classes + static_cast<size_t>(targets[row])];
  }
}

void reference_cross_entropy_grad(RefContext& ctx) {
  const size_t classes = at(ctx.inputs[0]->type.shape.dim(-1));
  for (size_t row = 0; row < ctx.inputs[1]->data.size(); ++row)
    cross_entropy_slope(&ctx.inputs[0]->data[row * classes], classes, ctx.inputs[2]->data[row],
                        ctx.inputs[1]->data[row], ctx.inputs[3]->data[0],
                        &ctx.outputs[0]->data[row * classes]);
}

Cost cost_cross_entropy(const OpTypes& t) {
  return cost_of(t, 12.0 * static_cast<double>(t.inputs[0].num_elements()));
}

}  // namespace

OpGroup cross_entropy_ops() {
  using enum ir::RecomputeClass;
  using enum ir::AutocastClass;
  static const std::vector<OpDef> kOps = {
      {.name = "cross_entropy",
       .summary = "sum of lse - logit[target]",
       .work = {WorkKind::kReduction},
       .min_inputs = 2,
       .max_inputs = 4,
       .infer = infer_cross_entropy,
       .vjp = vjp_cross_entropy,
       .cost = cost_cross_entropy,
       .reference = reference_cross_entropy,
       .autocast = kF32,
       .recompute = kNearlyFree,
       .accumulators = {{0, 3}},
       .is_loss = true},
      {.name = "cross_entropy_grad",
       .summary = "(softmax - onehot) * grad_scale",
       .work = {WorkKind::kElementwise},
       .min_inputs = 4,
       .max_inputs = 4,
       .infer = infer_cross_entropy_grad,
       .cost = cost_cross_entropy,
       .reference = reference_cross_entropy_grad,
       .autocast = kF32,
       .recompute = kNearlyFree,
       .in_place = {{0, 0}}},
  };
  return kOps;
}

CrossEntropy cross_entropy(Builder& b, ValueId logits, ValueId targets, ValueId grad_scale, ValueId acc) {
  const auto results = b.ops("cross_entropy", trimmed({logits, targets, grad_scale, acc}));
  return {results[0], results[1]};
}

}  // namespace plimsoll::ops
