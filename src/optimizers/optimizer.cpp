// What all optimizers share: norm and clipping, then the rule's op for each parameter; the table's rows.
#include "optimizers/optimizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "ops/ops.h"
#include "ops/update_rules.h"
#include "optimizers/optimizer_list.h"

namespace plimsoll::optimizers {
namespace {

using ir::ValueId;

void assign_output(ir::Builder& b, std::string_view name, ValueId value) {
  b.graph().declare_state({std::string(name), b.type(value), ir::StateClass::kOutput});
  b.assign(name, value);
}

/// Of gradients of a scaled loss: their norm, what each is to be multiplied with, and the scaler's next
/// state.
ValueId append_unscale(ir::Builder& b, const std::vector<Update>& updates, const OptimizerOptions& options) {
  std::vector<ValueId> gradients;
  for (const Update& u : updates) gradients.push_back(u.gradient);
  const ValueId squares = b.op("sum_squares_sweep", std::move(gradients));
  assign_output(b, kGradSquaresState, squares);
  const ValueId scaled_norm = ops::global_norm(b, {squares});
  const ValueId scaler = b.state(scaler_state());
  const ops::Unscaled unscaled = ops::unscale(b, scaled_norm, scaler, options.max_grad_norm);
  assign_output(b, kGradNormState, unscaled.norm);
  b.assign(kScalerState, ops::next_scale(b, scaler, scaled_norm, *options.loss_scaling));
  return unscaled.factor;
}

/// Norm of the gradients, and what each is to be multiplied with.
ValueId append_clip(ir::Builder& b, const std::vector<Update>& updates, const OptimizerOptions& options) {
  if (options.loss_scaling) return append_unscale(b, updates, options);
  std::vector<ValueId> squares;
  for (const Update& u : updates) squares.push_back(ops::sum_squares(b, u.gradient));
  const ValueId norm = ops::global_norm(b, squares);
  assign_output(b, kGradNormState, norm);
  return options.max_grad_norm ? ops::clip_scale(b, norm, *options.max_grad_norm) : ops::fill(b, {1}, 1.0);
}

void append_rule(ir::Builder& b, const ops::UpdateRule& rule, const Update& u, ValueId clip, ValueId groups) {
  const ValueId param = b.read(u.parameter);
  std::vector<std::string> names;
  std::vector<ValueId> states;
  for (const std::string_view state : rule.states) {
    names.push_back(fmt::format("{}.{}.{}", rule.name, state, u.parameter));
    states.push_back(b.state({names.back(), b.type(param), ir::StateClass::kOptimizerState}));
  }
  const std::vector<ValueId> next = ops::update(b, rule, param, u.gradient, states, clip, groups, u.group);
  b.assign(u.parameter, next[0]);
  for (size_t s = 0; s < names.size(); ++s) b.assign(names[s], next[1 + s]);
}

}  // namespace

ir::StateDecl scaler_state() {
  return {std::string(kScalerState), {ir::DType::kF32, {ops::kScalerFields}}, ir::StateClass::kScaler};
}

Status append_update(ir::Builder& b, const std::vector<Update>& updates, const OptimizerOptions& options) {
  const OptimizerDef* def = find_optimizer(options.name);
  if (def == nullptr)
    return Error{ErrorCode::kInvalidArgument, fmt::format("unknown optimizer '{}'", options.name),
                 "training.optimizer", fmt::format("choose {}", fmt::join(optimizer_names(), ", "))};
  const ops::UpdateRule* rule = ops::find_update_rule(def->rule(options));
  PLIMSOLL_CHECK(rule != nullptr, options.name);
  const auto scope = b.scope("optimizer");
  const ValueId clip = append_clip(b, updates, options);
  const ValueId groups = b.state({std::string(kGroupsState),
                                  {ir::DType::kF32, {kNumGroups, rule->num_fields}},
                                  ir::StateClass::kScalars});
  for (const Update& u : updates) append_rule(b, *rule, u, clip, groups);
  return b.status();
}

void write_groups(const StepHyper& hyper, float* table) {
  const OptimizerDef* def = find_optimizer(hyper.optimizer);
  PLIMSOLL_CHECK(def != nullptr, std::string(hyper.optimizer));
  const ops::UpdateRule* rule = ops::find_update_rule(def->rule({}));
  for (int64_t g = 0; g < kNumGroups; ++g)
    def->write_row(hyper, g == kDecay ? hyper.weight_decay : 0.0, table + g * rule->num_fields);
}

}  // namespace plimsoll::optimizers
