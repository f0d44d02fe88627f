// Cross-entropy against smoothed and mixed targets.
#include "ops/soft_cross_entropy.h"

#include <cmath>
#include <vector>

#include "ops/cross_entropy_math.h"
#include "ops/operands.h"

namespace plimsoll::ops {
namespace {

constexpr std::string_view kSmoothing = "smoothing";

void check_targets(Operands& in, const OpTypes& t, size_t second) {
  const double smoothing = t.attrs.f64(kSmoothing);
  in.require(smoothing >= 0 && smoothing < 1, "smoothing must be in [0, 1)");
  in.require(t.has(second) == t.has(second + 1), "second and share come together");
}

Result<Types> infer_soft_cross_entropy(const OpTypes& t) {
  Operands in(t, 3, {"logits", "targets", "grad_scale", "acc", "second", "share"});
  if (!in) return in.error();
  const Shape rows = without_last(t.inputs[0].shape);
  in.floating({2, 3, 5}, {1, 4}).shaped(1, rows).shaped(2, Shape{1}).shaped(3, Shape{1});
  in.shaped(4, rows).shaped(5, rows);
  check_targets(in, t, 4);
  return in.results({{DType::kF32, Shape{1}}, {DType::kF32, rows}});
}

Result<Types> infer_soft_cross_entropy_grad(const OpTypes& t) {
  Operands in(t, 4, {"logits", "targets", "lse", "grad_scale", "second", "share"});
  if (!in) return in.error();
  const Shape rows = without_last(t.inputs[0].shape);
  in.floating({2, 3, 5}, {1, 4}).shaped(1, rows).shaped(2, rows).shaped(3, Shape{1});
  in.shaped(4, rows).shaped(5, rows);
  check_targets(in, t, 4);
  return in.results({t.inputs[0]});
}

/// By contract the loss's cotangent is grad_scale: the op's operand stands for it.
void vjp_soft_cross_entropy(VjpContext& ctx) {
  const Op op = ctx.op();
  if (!ctx.cotangent(0).valid()) return;
  const auto optional = [&](size_t i) { return i < op.inputs.size() ? op.inputs[i] : ValueId{}; };
  if (ctx.wants(0))
    ctx.add(0, ctx.builder().op("soft_cross_entropy_grad",
                                trimmed({op.inputs[0], op.inputs[1], op.outputs[1], op.inputs[2], optional(4),
                                         optional(5)}),
                                op.attrs));
  if (optional(3).valid() && ctx.wants(3)) ctx.add(3, ctx.cotangent(0));
}

/// The targets of both references; second and share are operands 4 and 5.
class Targets {
 public:
  explicit Targets(const RefContext& ctx)
      : targets_(ctx.inputs[1]->data),
        second_(ctx.inputs.size() > 5 ? ctx.inputs[4] : nullptr),
        share_(ctx.inputs.size() > 5 ? ctx.inputs[5] : nullptr),
        smoothing_(ctx.op.attrs.f64(kSmoothing)),
        classes_(static_cast<double>(ctx.inputs[0]->type.shape.dim(-1))) {}
  [[nodiscard]] double share_of(size_t row, size_t c) const {
    const auto hit = [&](double target) { return static_cast<double>(c) == target ? 1.0 : 0.0; };
    const double first = hit(targets_[row]);
    const double hard = second_ == nullptr
                            ? first
                            : share_->data[row] * first + (1 - share_->data[row]) * hit(second_->data[row]);
    return (1 - smoothing_) * hard + smoothing_ / classes_;
  }

 private:
  const std::vector<double>& targets_;
  const RefTensor *second_, *share_;
  double smoothing_, classes_;
};

void reference_soft_cross_entropy(RefContext& ctx) {
  const auto& logits = ctx.inputs[0]->data;
  const size_t classes = at(ctx.inputs[0]->type.shape.dim(-1));
  const Targets targets(ctx);
  double& loss = ctx.outputs[0]->data[0];
  if (ctx.inputs.size() > 3 && ctx.inputs[3] != nullptr) loss = ctx.inputs[3]->data[0];
  for (size_t row = 0; row < ctx.inputs[1]->data.size(); ++row) {
    const double lse = log_sum_exp(&logits[row * classes], classes);
    ctx.outputs[1]->data[row] = lse;
    for (size_t c = 0; c < classes && counts(ctx.inputs[1]->data[row]); ++c)
      loss += targets.share_of(row, c) * (lse - logits[row * classes + c]);
  }
}

void reference_soft_cross_entropy_grad(RefContext& ctx) {
  const auto& logits = ctx.inputs[0]->data;
  const size_t classes = at(ctx.inputs[0]->type.shape.dim(-1));
  const Targets targets(ctx);
  for (size_t i = 0; i < logits.size(); ++i) {
    const size_t row = i / classes;
    if (!counts(ctx.inputs[1]->data[row])) continue;
    const double p = std::exp(logits[i] - ctx.inputs[2]->data[row]);
    ctx.outputs[0]->data[i] = (p - targets.share_of(row, i % classes)) * ctx.inputs[3]->data[0];
  }
}

Cost cost_soft_cross_entropy(const OpTypes& t) {
  return cost_of(t, 13.0 * static_cast<double>(t.inputs[0].num_elements()));
}

}  // namespace

OpGroup soft_cross_entropy_ops() {
  using enum ir::RecomputeClass;
  using enum ir::AutocastClass;
  static const std::vector<OpDef> kOps = {
      {.name = "soft_cross_entropy",
       .summary = "sum of lse - sum of target * logit, of smoothed or mixed targets",
       .work = {WorkKind::kReduction},
       .min_inputs = 3,
       .max_inputs = 6,
       .attrs = {float_attr(kSmoothing)},
       .infer = infer_soft_cross_entropy,
       .vjp = vjp_soft_cross_entropy,
       .cost = cost_soft_cross_entropy,
       .reference = reference_soft_cross_entropy,
       .autocast = kF32,
       .recompute = kNearlyFree,
       .accumulators = {{0, 3}},
       .is_loss = true},
      {.name = "soft_cross_entropy_grad",
       .summary = "(softmax - target) * grad_scale",
       .work = {WorkKind::kElementwise},
       .min_inputs = 4,
       .max_inputs = 6,
       .attrs = {float_attr(kSmoothing)},
       .infer = infer_soft_cross_entropy_grad,
       .cost = cost_soft_cross_entropy,
       .reference = reference_soft_cross_entropy_grad,
       .autocast = kF32,
       .recompute = kNearlyFree,
       .in_place = {{0, 0}}},
  };
  return kOps;
}

CrossEntropy soft_cross_entropy(Builder& b, ValueId logits, const SoftTargets& targets, ValueId grad_scale,
                                ValueId acc) {
  const auto results =
      b.ops("soft_cross_entropy",
            trimmed({logits, targets.targets, grad_scale, acc, targets.second, targets.share}),
            {{"smoothing", targets.smoothing}});
  return {results[0], results[1]};
}

}  // namespace plimsoll::ops
