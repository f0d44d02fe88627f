// Shared code of all optimizers: norm and clipping, then the rule's op for each parameter; the table's rows.
#include "optimizers/optimizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "ops/ops.h"
#include "ops/tensor_rules.h"
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
  ir::Attrs attrs;
  if (options.state.gradients != ir::DType::kF32)
    attrs.set("rounded", std::string(ir::name(options.state.gradients)));
  const ValueId squares = b.op("sum_squares_sweep", std::move(gradients), std::move(attrs));
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
  for (const Update& u : updates) squares.push_back(ops::sum_squares(b, u.gradient, options.state.gradients));
  const ValueId norm = ops::global_norm(b, squares);
  assign_output(b, kGradNormState, norm);
  return options.max_grad_norm ? ops::clip_scale(b, norm, *options.max_grad_norm) : ops::fill(b, {1}, 1.0);
}

/// What every update of a program reads.
struct Shared {
  const OptimizerDef& def;
  const OptimizerOptions& options;
  ValueId clip, groups, random;
};

/// A state of a rule, of whichever kind the rule is.
struct StateForm {
  std::string_view name;
  ir::TensorType type;
};

/// A parameter's rule, of one kind or the other.
struct Rule {
  const ops::UpdateRule* elementwise = nullptr;
  const ops::TensorRule* of_tensor = nullptr;

  explicit Rule(std::string_view name)
      : elementwise(ops::find_update_rule(name)), of_tensor(ops::find_tensor_rule(name)) {
    PLIMSOLL_CHECK(elementwise != nullptr || of_tensor != nullptr, std::string(name));
  }
  [[nodiscard]] std::string_view name() const {
    return elementwise != nullptr ? elementwise->name : of_tensor->name;
  }
  [[nodiscard]] std::vector<StateForm> states(const ops::RuledTensor& tensor, ir::DType moments) const {
    std::vector<StateForm> forms;
    if (elementwise != nullptr) {
      for (const std::string_view name : elementwise->states)
        forms.push_back({name, {moments, tensor.shape}});
    } else {
      for (const ops::RuleState& s : of_tensor->states)
        forms.push_back({s.name, {s.dtype.value_or(moments), s.shape_of(tensor)}});
    }
    return forms;
  }
};

/// Empty where the optimizer has none for the parameter.
std::string_view rule_of(const OptimizerDef& def, const OptimizerOptions& options, const ir::Shape& shape,
                         const Update& u) {
  const std::string_view rule = def.rule({shape, u.kind, u.is_hidden, options.momentum});
  const bool is_coded = rule == "adamw" && shape.num_elements() >= kLeastCodedElements;
  return is_coded && options.state.codes != MomentCodes::kNone
             ? ops::fp8_rule_name(options.state.codes == MomentCodes::kCoat)
             : rule;
}

Error no_rule(const OptimizerDef& def, const Update& u, const ir::Shape& shape) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("{} has no rule for {}, a stack of linear layers {}", def.name, u.parameter,
                      ir::to_string(shape)),
          "training.optimizer", "choose adamw, or freeze it with training.freeze"};
}

Status append_rule(ir::Builder& b, const Shared& shared, const Update& u) {
  const StateDtypes& state = shared.options.state;
  const ir::TensorType weight = b.graph().find_state(u.parameter)->type;
  const std::string_view rule_name = rule_of(shared.def, shared.options, weight.shape, u);
  if (rule_name.empty()) return no_rule(shared.def, u, weight.shape);
  const Rule rule(rule_name);
  ops::RuledTensor tensor{weight.shape, u.parts, shared.options.muon_ns_steps};
  if (tensor.parts.empty()) tensor.parts = {weight.shape.dim(0)};
  const std::string kept = state.masters ? master_name(u.parameter) : u.parameter;
  const ir::TensorType wide{ir::DType::kF32, weight.shape};
  const ValueId param =
      state.masters ? b.state({kept, wide, ir::StateClass::kMasterWeight}) : b.read(u.parameter);
  std::vector<std::string> names;
  std::vector<ValueId> states;
  bool is_brief = !state.masters && weight.dtype == ir::DType::kBf16;
  for (const StateForm& form : rule.states(tensor, state.moments)) {
    names.push_back(fmt::format("{}.{}.{}", rule.name(), form.name, u.parameter));
    states.push_back(b.state({names.back(), form.type, ir::StateClass::kOptimizerState}));
    is_brief = is_brief || form.type.dtype == ir::DType::kBf16;
  }
  ops::UpdateStorage storage{.gradient = state.gradients};
  if (state.masters) storage.copy = weight.dtype;
  if (state.stochastic && is_brief) {
    storage.random = shared.random;
    storage.key = ops::random_key(u.parameter, "update");
  }
  const auto next = rule.elementwise != nullptr
                        ? ops::update(b, *rule.elementwise, param, u.gradient, states, shared.clip,
                                      shared.groups, u.row, storage)
                        : ops::update_tensor(b, *rule.of_tensor, param, u.gradient, states, shared.clip,
                                             shared.groups, u.row, tensor, storage);
  b.assign(kept, next[0]);
  for (size_t s = 0; s < names.size(); ++s) b.assign(names[s], next[1 + s]);
  if (state.masters) b.assign(u.parameter, next.back());
  if (shared.options.averages) append_average(b, u.parameter, next[0]);
  return Ok{};
}

}  // namespace

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
  for (const Update& u : updates) PLIMSOLL_TRY(append_rule(b, {*def, options, clip, groups, random}, u));
  return b.status();
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
