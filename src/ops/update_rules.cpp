// The rules, and the ops that follow from them.
#include "ops/update_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "ops/operands.h"

namespace plimsoll::ops {
namespace {

void adamw(double g, const double* group, double* element) {
  double &p = element[0], &m = element[1], &v = element[2];
  p *= group[kAdamwDecay];
  m += (g - m) * group[kAdamwOneMinusBeta1];
  v = v * group[kAdamwBeta2] + group[kAdamwOneMinusBeta2] * g * g;
  p -= group[kAdamwStepSize] * (m / (std::sqrt(v) / group[kAdamwSqrtCorrection2] + group[kAdamwEpsilon]));
}

void sgd(double g, const double* group, double* element) {
  element[0] -= group[kSgdRate] * (g + group[kSgdWeightDecay] * element[0]);
}

void sgd_momentum(double g, const double* group, double* element) {
  double &p = element[0], &buffer = element[1];
  g += group[kSgdWeightDecay] * p;
  buffer = buffer * group[kSgdMomentum] + group[kSgdFresh] * g;
  p -= group[kSgdRate] * (group[kSgdNesterov] != 0 ? g + group[kSgdMomentum] * buffer : buffer);
}

// ---- the ops of a rule
// ---------------------------------------------------------------------------------------------

constexpr size_t kSweepFirst = 2;  // clip and groups come before the tensors of a sweep

const UpdateRule& rule_of(std::string_view op) { return *find_update_rule(op); }

std::vector<std::string_view> tensor_names(const UpdateRule& rule) {
  std::vector<std::string_view> names = {"param", "grad"};
  names.insert(names.end(), rule.states.begin(), rule.states.end());
  return names;
}

/// The table has the rule's columns and a row for `group`.
void check_group(Operands& in, const UpdateRule& rule, const Shape& groups, int64_t group, size_t operand) {
  in.require(groups.rank() == 2 && groups.dim(1) == rule.num_fields,
             fmt::format("groups must be [n,{}]", rule.num_fields), {operand});
  in.require(group >= 0 && group < groups.dim(0), fmt::format("group {} is not in the table", group),
             {operand});
}

/// Gradient and states of the tensor whose operands begin at `first` have the parameter's shape; its results.
void check_tensor(Operands& in, const UpdateRule& rule, const OpTypes& t, size_t first, Types& results) {
  for (size_t i = 1; i < rule.num_operands(); ++i) in.shaped(first + i, t.inputs[first].shape);
  results.push_back(t.inputs[first]);
  for (size_t s = 0; s < rule.states.size(); ++s) results.push_back(t.inputs[first + 2 + s]);
}

Result<Types> infer_one(const OpTypes& t) {
  const UpdateRule& rule = rule_of(t.op);
  const size_t clip = rule.num_operands(), groups = clip + 1;
  auto names = tensor_names(rule);
  names.insert(names.end(), {"clip", "groups"});
  Operands in(t, groups + 1, std::move(names));
  if (!in) return in.error();
  Types results;
  check_tensor(in.floating({clip, groups}), rule, t, 0, results);
  in.shaped(clip, Shape{1});
  check_group(in, rule, t.inputs[groups].shape, t.attrs.i64("group"), groups);
  return in.results(std::move(results));
}

Result<Types> infer_sweep(const OpTypes& t) {
  const UpdateRule& rule = rule_of(t.op);
  const auto& group = t.attrs.ints("group");
  const size_t wanted = kSweepFirst + rule.num_operands() * group.size();
  const auto each = tensor_names(rule);
  if (t.inputs.size() != wanted)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: takes clip, groups and ({}) for each of {} groups, given {} operands", t.op,
                             fmt::join(each, ", "), group.size(), t.inputs.size())};
  std::vector<std::string_view> names = {"clip", "groups"};
  for (size_t i = 0; i < group.size(); ++i) names.insert(names.end(), each.begin(), each.end());
  Operands in(t, wanted, std::move(names));
  if (!in) return in.error();
  in.floating({0, 1}).shaped(0, Shape{1});
  Types results;
  for (size_t k = 0; k < group.size(); ++k) {
    check_tensor(in, rule, t, kSweepFirst + rule.num_operands() * k, results);
    check_group(in, rule, t.inputs[1].shape, group[k], 1);
  }
  return in.results(std::move(results));
}

/// The results of one tensor lie where its parameter and states lay.
void add_aliases(const UpdateRule& rule, size_t operand, size_t result, std::vector<ir::Alias>& aliases) {
  for (size_t r = 0; r < rule.num_results(); ++r)
    aliases.push_back(
        {static_cast<int32_t>(result + r), static_cast<int32_t>(r == 0 ? operand : operand + 1 + r)});
}

std::vector<ir::Alias> sweep_consumes(const Op& op) {
  const UpdateRule& rule = rule_of(op.def->name);
  std::vector<ir::Alias> aliases;
  size_t result = 0;
  for (size_t first = kSweepFirst; first + rule.num_operands() <= op.inputs.size();
       first += rule.num_operands(), result += rule.num_results())
    add_aliases(rule, first, result, aliases);
  return aliases;
}

/// One tensor: operands from `first`, results from `result`.
void apply(RefContext& ctx, size_t first, size_t result, double clip, const double* group) {
  const UpdateRule& rule = rule_of(ctx.op.def->name);
  std::vector<double> element(rule.num_results());
  for (size_t i = 0; i < ctx.inputs[first]->data.size(); ++i) {
    element[0] = ctx.inputs[first]->data[i];
    for (size_t s = 0; s < rule.states.size(); ++s) element[1 + s] = ctx.inputs[first + 2 + s]->data[i];
    if (!std::isnan(clip)) rule.apply(ctx.inputs[first + 1]->data[i] * clip, group, element.data());
    for (size_t r = 0; r < element.size(); ++r) ctx.outputs[result + r]->data[i] = element[r];
  }
}

void reference_one(RefContext& ctx) {
  const UpdateRule& rule = rule_of(ctx.op.def->name);
  const size_t clip = rule.num_operands();
  apply(ctx, 0, 0, ctx.inputs[clip]->data[0],
        &ctx.inputs[clip + 1]->data[at(ctx.op.attrs.i64("group") * rule.num_fields)]);
}

void reference_sweep(RefContext& ctx) {
  const UpdateRule& rule = rule_of(ctx.op.def->name);
  const auto& group = ctx.op.attrs.ints("group");
  for (size_t k = 0; k < group.size(); ++k)
    apply(ctx, kSweepFirst + rule.num_operands() * k, rule.num_results() * k, ctx.inputs[0]->data[0],
          &ctx.inputs[1]->data[at(group[k] * rule.num_fields)]);
}

Cost cost_update(const OpTypes& t) {
  const UpdateRule& rule = rule_of(t.op);
  double elements = 0;
  for (size_t r = 0; r < t.outputs.size(); r += rule.num_results())
    elements += static_cast<double>(t.outputs[r].num_elements());
  return cost_of(t, rule.flops * elements);
}

void add_ops(const UpdateRule& rule, std::vector<OpDef>& defs) {
  const auto operands = static_cast<int>(rule.num_operands() + 2);
  OpDef one = {.name = rule.name,
               .summary = rule.summary,
               .min_inputs = operands,
               .max_inputs = operands,
               .attrs = {int_attr("group")},
               .infer = infer_one,
               .cost = cost_update,
               .reference = reference_one,
               .autocast = ir::AutocastClass::kF32,
               .recompute = ir::RecomputeClass::kNever};
  add_aliases(rule, 0, 0, one.consumes);
  defs.push_back(std::move(one));
  defs.push_back({.name = rule.sweep,
                  .summary = rule.summary,
                  .min_inputs = kSweepFirst,
                  .max_inputs = -1,
                  .attrs = {ints_attr("group")},
                  .infer = infer_sweep,
                  .cost = cost_update,
                  .reference = reference_sweep,
                  .autocast = ir::AutocastClass::kF32,
                  .recompute = ir::RecomputeClass::kNever,
                  .consumes_variadic = sweep_consumes});
}

}  // namespace

std::span<const UpdateRule> update_rules() {
  static const std::vector<UpdateRule> kRules = {
      {"adamw", "adamw_sweep", "Adam with decoupled weight decay", {"m", "v"}, kAdamwFields, 14, adamw},
      {"sgd", "sgd_sweep", "gradient descent", {}, kSgdFields, 5, sgd},
      {"sgd_momentum",
       "sgd_momentum_sweep",
       "gradient descent with momentum",
       {"buffer"},
       kSgdFields,
       8,
       sgd_momentum},
  };
  return kRules;
}

const UpdateRule* find_update_rule(std::string_view op) {
  for (const UpdateRule& rule : update_rules())
    if (rule.name == op || rule.sweep == op) return &rule;
  return nullptr;
}

OpGroup update_rules_ops() {
  static const std::vector<OpDef> kOps = [] {
    std::vector<OpDef> defs;
    for (const UpdateRule& rule : update_rules()) add_ops(rule, defs);
    return defs;
  }();
  return kOps;
}

std::vector<ValueId> update(Builder& b, const UpdateRule& rule, ValueId param, ValueId grad,
                            std::span<const ValueId> states, ValueId clip, ValueId groups, int64_t group) {
  std::vector<ValueId> operands = {param, grad};
  operands.insert(operands.end(), states.begin(), states.end());
  operands.insert(operands.end(), {clip, groups});
  return b.ops(rule.name, std::move(operands), {{"group", group}});
}

}  // namespace plimsoll::ops
