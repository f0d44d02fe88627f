// AdamW, Loshchilov & Hutter 2019, arXiv:1711.05101, as torch.optim.AdamW computes it.
#include <fmt/format.h>

#include <cmath>

#include "ops/ops.h"
#include "optimizers/optimizer.h"

namespace plimsoll::optimizers {

using ir::ValueId;

Status append_update(ir::Builder& b, const std::vector<Update>& updates, const OptimizerOptions& options) {
  if (options.name != "adamw" && options.name != "adam")
    return Error{ErrorCode::kInvalidArgument, fmt::format("unknown optimizer '{}'", options.name),
                 "training.optimizer", "choose adamw"};
  const auto scope = b.scope("optimizer");
  std::vector<ValueId> squares;
  for (const Update& u : updates) squares.push_back(ops::sum_squares(b, u.gradient));
  const ValueId norm = ops::global_norm(b, squares);
  b.graph().declare_state({std::string(kGradNormState), {ir::DType::kF32, {1}}, ir::StateClass::kOutput});
  b.assign(kGradNormState, norm);
  const ValueId clip =
      options.max_grad_norm ? ops::clip_scale(b, norm, *options.max_grad_norm) : ops::fill(b, {1}, 1.0);
  const ValueId groups = b.state({std::string(kGroupsState),
                                  {ir::DType::kF32, {kNumGroups, ops::kGroupFields}},
                                  ir::StateClass::kScalars});
  for (const Update& u : updates) {
    const ValueId param = b.read(u.parameter);
    const std::string m = "adamw.m." + u.parameter, v = "adamw.v." + u.parameter;
    const ValueId m_old = b.state({m, b.type(param), ir::StateClass::kOptimizerState});
    const ValueId v_old = b.state({v, b.type(param), ir::StateClass::kOptimizerState});
    const ops::AdamW next = ops::adamw(b, param, u.gradient, m_old, v_old, clip, groups, u.group);
    b.assign(u.parameter, next.param);
    b.assign(m, next.m);
    b.assign(v, next.v);
  }
  return b.status();
}

void write_groups(const StepHyper& hyper, float* table) {
  for (int64_t g = 0; g < kNumGroups; ++g) {
    const double decay = g == kDecay ? hyper.weight_decay : 0.0;
    const double correction1 = 1.0 - std::pow(hyper.beta1, static_cast<double>(hyper.step));
    const double correction2 = 1.0 - std::pow(hyper.beta2, static_cast<double>(hyper.step));
    float* row = table + g * ops::kGroupFields;
    row[ops::kDecayFactor] = static_cast<float>(1.0 - hyper.learning_rate * decay);
    row[ops::kBeta1] = static_cast<float>(hyper.beta1);
    row[ops::kOneMinusBeta1] = static_cast<float>(1.0 - hyper.beta1);
    row[ops::kBeta2] = static_cast<float>(hyper.beta2);
    row[ops::kOneMinusBeta2] = static_cast<float>(1.0 - hyper.beta2);
    row[ops::kEpsilon] = static_cast<float>(hyper.epsilon);
    row[ops::kStepSize] = static_cast<float>(hyper.learning_rate / correction1);
    row[ops::kSqrtCorrection2] = static_cast<float>(std::sqrt(correction2));
  }
}

}  // namespace plimsoll::optimizers
