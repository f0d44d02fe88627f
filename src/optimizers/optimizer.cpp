// Shared code of all optimizers: norm and clipping, then the rule's op for each parameter; the table's rows.
#include "optimizers/optimizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "ops/ops.h"
#include "ops/shard.h"
#include "optimizers/append_rules.h"
#include "optimizers/parameter_rule.h"

namespace plimsoll::optimizers {
namespace {

using ir::ValueId;

void assign_output(ir::Builder& b, std::string_view name, ValueId value) {
  b.graph().declare_state({std::string(name), b.type(value), ir::StateClass::kOutput});
  b.assign(name, value);
}

/// The squares of each gradient: one tensor, or one a gradient.
std::vector<ValueId> append_squares(ir::Builder& b, const std::vector<Update>& updates,
                                    const OptimizerOptions& options) {
  std::vector<ValueId> gradients, squares;
  std::vector<int64_t> elements;
  for (const Update& u : updates) {
    gradients.push_back(u.gradient);
    elements.push_back(parameter_type(b.graph(), u).num_elements());
  }
  if (options.ranks > 1)
    return {ops::squares_over_ranks(b, gradients, elements, options.ranks, options.state.gradients)};
  for (const ValueId g : gradients) squares.push_back(ops::sum_squares(b, g, options.state.gradients));
  return squares;
}

/// The same as one tensor: what the host reads of an overflow.
ValueId scaled_squares(ir::Builder& b, const std::vector<Update>& updates, const OptimizerOptions& options) {
  if (options.ranks > 1) return append_squares(b, updates, options).front();
  std::vector<ValueId> gradients;
  for (const Update& u : updates) gradients.push_back(u.gradient);
  ir::Attrs attrs;
  if (options.state.gradients != ir::DType::kF32)
    attrs.set("rounded", std::string(ir::name(options.state.gradients)));
  return b.op("sum_squares_sweep", std::move(gradients), std::move(attrs));
}

/// Of gradients of a scaled loss: their norm, what each is to be multiplied with, and the scaler's next
/// state.
ValueId append_unscale(ir::Builder& b, const std::vector<Update>& updates, const OptimizerOptions& options) {
  const ValueId squares = scaled_squares(b, updates, options);
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
  const ValueId norm = ops::global_norm(b, append_squares(b, updates, options));
  assign_output(b, kGradNormState, norm);
  return options.max_grad_norm ? ops::clip_scale(b, norm, *options.max_grad_norm) : ops::fill(b, {1}, 1.0);
}

}  // namespace

ir::TensorType parameter_type(const ir::Graph& graph, const Update& update) {
  return update.type ? *update.type : graph.find_state(update.parameter)->type;
}

std::string state_name(const Rule& rule, std::string_view state, std::string_view parameter) {
  return fmt::format("{}.{}.{}", rule.name(), state, parameter);
}
std::string master_name(std::string_view parameter) { return fmt::format("master.{}", parameter); }
std::string average_name(std::string_view state) { return fmt::format("ema.{}", state); }

void append_average(ir::Builder& b, std::string_view state, ValueId value) {
  const std::string name = average_name(state);
  const ValueId average =
      b.state({name, {ir::DType::kF32, b.type(value).shape}, ir::StateClass::kOptimizerState});
  const ValueId share =
      b.state({std::string(kAverageShareState), {ir::DType::kF32, {1}}, ir::StateClass::kScalars});
  b.assign(name, ops::pointwise(b, "add(x0,mul(x2,sub(x1,x0)))", {average, value, share}));
}

UpdateWork update_work(const OptimizerOptions& options, const ir::Shape& parameter, const Update& update) {
  const OptimizerDef* def = find_optimizer(options.name);
  PLIMSOLL_CHECK(def != nullptr, options.name);
  UpdateWork work;
  const std::string_view rule_name = rule_of(*def, options, parameter, update);
  if (rule_name.empty()) return work;
  const Rule rule(rule_name);
  const ops::RuledTensor tensor{parameter, update.parts, options.muon_ns_steps};
  for (const StateForm& form : rule.states(tensor, options.state.moments))
    work.state_bytes += form.type.bytes().count;
  if (options.averages) work.state_bytes += 4 * parameter.num_elements();
  work.flops = rule.elementwise != nullptr
                   ? rule.elementwise->flops * static_cast<double>(parameter.num_elements())
                   : rule.of_tensor->flops(tensor);
  return work;
}

ir::StateDecl scaler_state() {
  return {std::string(kScalerState), {ir::DType::kF32, {ops::kScalerFields}}, ir::StateClass::kScaler};
}

Status append_update(ir::Builder& b, const std::vector<Update>& updates, const OptimizerOptions& options,
                     ValueId random) {
  const OptimizerDef* def = find_optimizer(options.name);
  if (def == nullptr)
    return Error{ErrorCode::kInvalidArgument, fmt::format("unknown optimizer '{}'", options.name),
                 "training.optimizer", fmt::format("choose {}", fmt::join(optimizer_names(), ", "))};
  const auto scope = b.block(ir::kUpdateBlock, "optimizer");
  const ValueId clip = append_clip(b, updates, options);
  const ValueId groups = b.state({std::string(kGroupsState),
                                  {ir::DType::kF32, {row_of(1 + options.num_groups, true), def->num_fields}},
                                  ir::StateClass::kScalars});
  return append_rules(b, updates, {*def, options, clip, groups, random});
}

void write_groups(const StepHyper& hyper, std::span<const GroupHyper> groups, float* table) {
  const OptimizerDef* def = find_optimizer(hyper.optimizer);
  PLIMSOLL_CHECK(def != nullptr, std::string(hyper.optimizer));
  const auto write = [&](int64_t group, const StepHyper& of, double not_decaying) {
    def->write_row(of, of.weight_decay, table + row_of(group, true) * def->num_fields);
    def->write_row(of, not_decaying, table + row_of(group, false) * def->num_fields);
  };
  write(0, hyper, 0.0);
  for (size_t g = 0; g < groups.size(); ++g) {
    StepHyper of = hyper;
    if (groups[g].learning_rate) of.learning_rate = *groups[g].learning_rate * hyper.schedule_factor;
    if (groups[g].betas) {
      of.beta1 = (*groups[g].betas)[0];
      of.beta2 = (*groups[g].betas)[1];
    }
    of.weight_decay = groups[g].weight_decay.value_or(hyper.weight_decay);
    write(static_cast<int64_t>(g) + 1, of, groups[g].weight_decay.value_or(0.0));
  }
}

}  // namespace plimsoll::optimizers
