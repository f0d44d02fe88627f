// The rules, and the ops that follow from them.
#include "ops/update_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "ops/operands.h"
#include "ops/philox.h"
#include "ops/rounding.h"
#include "ops/update_draws.h"

namespace plimsoll::ops {
namespace {

void adamw(double g, const double* group, double* element) {
  double &p = element[0], &m = element[1], &v = element[2];
  p *= group[kAdamwDecay];
  m += (g - m) * group[kAdamwOneMinusBeta1];
  v = v * group[kAdamwBeta2] + group[kAdamwOneMinusBeta2] * g * g;
  p -= group[kAdamwStepSize] * (m / (std::sqrt(v) / group[kAdamwSqrtCorrection2] + group[kAdamwEpsilon]));
}

void adam_l2(double g, const double* group, double* element) {
  adamw(g + group[kAdamL2Decay] * element[0], group, element);
}

void lion(double g, const double* group, double* element) {
  double &p = element[0], &m = element[1];
  const double c = m * group[kLionBeta1] + group[kLionOneMinusBeta1] * g;
  p = p * group[kLionDecay] - group[kLionRate] * static_cast<double>((c > 0) - (c < 0));
  m = m * group[kLionBeta2] + group[kLionOneMinusBeta2] * g;
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

const UpdateRule& rule_of(std::string_view op) { return *find_update_rule(op); }

std::vector<std::string_view> tensor_names(const UpdateRule& rule) {
  std::vector<std::string_view> names = {"param", "grad"};
  names.insert(names.end(), rule.states.begin(), rule.states.end());
  return names;
}
std::vector<std::string_view> shared_names(const UpdateForm& form) {
  std::vector<std::string_view> names = {"clip", "groups", "random"};
  names.resize(form.num_shared());
  return names;
}

/// clip, groups and random, which begin at operand `first`; the attributes that all tensors share.
void check_shared(Operands& in, const UpdateForm& form, const OpTypes& t, size_t first) {
  form.draws ? in.floating({first, first + 1}, {first + 2}) : in.floating({first, first + 1});
  in.shaped(first, Shape{1});
  if (form.draws && in && t.inputs[first + 2].shape != Shape{kOwnDraws}) in.shaped(first + 2, Shape{4});
  for (const std::string_view name : {"rounded", "copy"}) check_short(in, t, name);
}

/// The table has the rule's columns, perhaps others behind them, and a row for `group`.
void check_group(Operands& in, const UpdateRule& rule, const Shape& groups, int64_t group, size_t operand) {
  in.require(groups.rank() == 2 && groups.dim(1) >= rule.num_fields,
             fmt::format("groups must be [n,{}]", rule.num_fields), {operand});
  in.require(group >= 0 && group < groups.dim(0), fmt::format("group {} is not in the table", group),
             {operand});
}

/// Gradient and states of the tensor whose operands begin at `first` have the parameter's shape; its results.
void check_tensor(Operands& in, const UpdateForm& form, const OpTypes& t, size_t first, Types& results) {
  const size_t begin = results.size();
  for (size_t i = 1; i < form.rule->num_operands(); ++i) in.shaped(first + i, t.inputs[first].shape);
  results.push_back(t.inputs[first]);
  for (size_t s = 0; s < form.rule->states.size(); ++s) results.push_back(t.inputs[first + 2 + s]);
  for (size_t r = begin; r < results.size() && form.draws; ++r)
    in.require(results[r].dtype != DType::kF16, "stochastic rounding is to bf16, not to f16");
  in.require(!form.copy || t.inputs[first].dtype == DType::kF32, "a copy is of an f32 parameter");
  if (form.copy) results.push_back({*form.copy, t.inputs[first].shape});
}

Result<Types> infer_one(const OpTypes& t) {
  const UpdateForm form = update_form(t.op, t.attrs);
  const size_t clip = form.rule->num_operands();
  auto names = tensor_names(*form.rule);
  for (const std::string_view name : shared_names(form)) names.push_back(name);
  Operands in(t, names.size(), names);
  if (!in) return in.error();
  Types results;
  check_shared(in, form, t, clip);
  check_tensor(in, form, t, 0, results);
  check_group(in, *form.rule, t.inputs[clip + 1].shape, t.attrs.i64("group"), clip + 1);
  in.require(form.first >= 0 && form.first % 4 == 0, "a window begins at a multiple of 4 elements");
  return in.results(std::move(results));
}

Result<Types> infer_multi_tensor(const OpTypes& t) {
  const UpdateForm form = update_form(t.op, t.attrs);
  const auto& group = t.attrs.ints("group");
  const size_t operands = form.rule->num_operands(), first = form.num_shared();
  const size_t wanted = first + operands * group.size();
  const auto each = tensor_names(*form.rule);
  auto names = shared_names(form);
  if (t.inputs.size() != wanted || (form.draws && t.attrs.ints("key").size() != group.size()))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: takes {} and ({}) for each of {} groups, given {} operands", t.op,
                             fmt::join(names, ", "), fmt::join(each, ", "), group.size(), t.inputs.size())};
  for (size_t i = 0; i < group.size(); ++i) names.insert(names.end(), each.begin(), each.end());
  Operands in(t, wanted, std::move(names));
  if (!in) return in.error();
  check_shared(in, form, t, 0);
  Types results;
  for (size_t k = 0; k < group.size(); ++k) {
    check_tensor(in, form, t, first + operands * k, results);
    check_group(in, *form.rule, t.inputs[1].shape, group[k], 1);
  }
  return in.results(std::move(results));
}

/// The results of one tensor lie where its parameter and states lay.
void add_aliases(const UpdateRule& rule, size_t operand, size_t result, std::vector<ir::Alias>& aliases) {
  for (size_t r = 0; r < rule.num_results(); ++r)
    aliases.push_back(
        {static_cast<int32_t>(result + r), static_cast<int32_t>(r == 0 ? operand : operand + 1 + r)});
}

std::vector<ir::Alias> multi_tensor_consumes(const Op& op) {
  const UpdateForm form = update_form(op.def->name, op.attrs);
  std::vector<ir::Alias> aliases;
  size_t result = 0;
  for (size_t first = form.num_shared(); first + form.rule->num_operands() <= op.inputs.size();
       first += form.rule->num_operands(), result += form.num_results())
    add_aliases(*form.rule, first, result, aliases);
  return aliases;
}

/// What one tensor of an op is updated with.
struct Tensor {
  size_t first, result;  ///< its operands and results
  double clip;
  const double* group;
  std::optional<UpdateDraws> draws;
};

double stored(double value, const Tensor& tensor, size_t result, size_t element) {
  element += static_cast<size_t>(tensor.draws->first);
  const uint32_t word = random_words(tensor.draws->stream, element / 4)[element % 4];
  return rounded_stochastically(value, update_bits(word, result));
}

void apply(RefContext& ctx, const UpdateForm& form, const Tensor& tensor) {
  const UpdateRule& rule = *form.rule;
  const bool skipped = std::isnan(tensor.clip);
  std::vector<double> element(rule.num_results());
  for (size_t i = 0; i < ctx.inputs[tensor.first]->data.size(); ++i) {
    element[0] = ctx.inputs[tensor.first]->data[i];
    for (size_t s = 0; s < rule.states.size(); ++s)
      element[1 + s] = ctx.inputs[tensor.first + 2 + s]->data[i];
    const double g = ctx.inputs[tensor.first + 1]->data[i];
    if (!skipped)
      rule.apply((form.rounded ? rounded(g, *form.rounded) : g) * tensor.clip, tensor.group, element.data());
    for (size_t r = 0; r < element.size(); ++r) {
      RefTensor& result = *ctx.outputs[tensor.result + r];
      const bool draws = tensor.draws && !skipped && result.type.dtype == DType::kBf16;
      result.data[i] = draws ? stored(element[r], tensor, r, i) : element[r];
    }
    if (form.copy) ctx.outputs[tensor.result + element.size()]->data[i] = element[0];
  }
}

/// What a tensor's key stands for, where the op draws; `random` is the operand.
std::optional<UpdateDraws> draws_of(const RefContext& ctx, const UpdateForm& form, size_t random,
                                    int64_t key) {
  if (!form.draws) return std::nullopt;
  const auto& words = ctx.inputs[random]->data;
  const auto word = [&](size_t i) { return static_cast<uint32_t>(static_cast<int32_t>(words[i])); };
  return update_draws(std::ssize(words), word, key, form.first);
}

void reference_one(RefContext& ctx) {
  const UpdateForm form = update_form(ctx.op.def->name, ctx.op.attrs);
  const size_t clip = form.rule->num_operands();
  apply(ctx, form,
        {0, 0, ctx.inputs[clip]->data[0],
         &ctx.inputs[clip + 1]->data[at(ctx.op.attrs.i64("group") * ctx.inputs[clip + 1]->type.shape.dim(1))],
         draws_of(ctx, form, clip + 2, form.draws ? ctx.op.attrs.i64("key") : 0)});
}

void reference_multi_tensor(RefContext& ctx) {
  const UpdateForm form = update_form(ctx.op.def->name, ctx.op.attrs);
  const auto& group = ctx.op.attrs.ints("group");
  for (size_t k = 0; k < group.size(); ++k)
    apply(ctx, form,
          {form.num_shared() + form.rule->num_operands() * k, form.num_results() * k, ctx.inputs[0]->data[0],
           &ctx.inputs[1]->data[at(group[k] * ctx.inputs[1]->type.shape.dim(1))],
           draws_of(ctx, form, 2, form.draws ? ctx.op.attrs.ints("key")[k] : 0)});
}

Cost cost_update(const OpTypes& t) {
  const UpdateForm form = update_form(t.op, t.attrs);
  double elements = 0;
  for (size_t r = 0; r < t.outputs.size(); r += form.num_results())
    elements += static_cast<double>(t.outputs[r].num_elements());
  return cost_of(t, form.rule->flops * elements);
}

void add_ops(const UpdateRule& rule, std::vector<OpDef>& defs) {
  const auto operands = static_cast<int>(rule.num_operands() + 2);
  const AttrSpec rounded{"rounded", AttrSpec::Kind::kString, false},
      copy{"copy", AttrSpec::Kind::kString, false};
  const AttrSpec key{"key", AttrSpec::Kind::kInt, false}, keys{"key", AttrSpec::Kind::kInts, false},
      first{"first", AttrSpec::Kind::kInt, false};
  OpDef one = {.name = rule.name,
               .summary = rule.summary,
               .work = {WorkKind::kUpdate},
               .min_inputs = operands,
               .max_inputs = operands + 1,
               .attrs = {int_attr("group"), rounded, copy, key, first},
               .infer = infer_one,
               .cost = cost_update,
               .reference = reference_one,
               .autocast = ir::AutocastClass::kF32,
               .recompute = ir::RecomputeClass::kNever,
               .multi_tensor = rule.multi_tensor,
               .random = operands};
  add_aliases(rule, 0, 0, one.consumes);
  defs.push_back(std::move(one));
  defs.push_back({.name = rule.multi_tensor,
                  .summary = rule.summary,
                  .work = {.kind = WorkKind::kUpdate, .is_multi_tensor = true},
                  .min_inputs = 2,
                  .max_inputs = -1,
                  .attrs = {ints_attr("group"), rounded, copy, keys},
                  .infer = infer_multi_tensor,
                  .cost = cost_update,
                  .reference = reference_multi_tensor,
                  .autocast = ir::AutocastClass::kF32,
                  .recompute = ir::RecomputeClass::kNever,
                  .consumes_variadic = multi_tensor_consumes,
                  .random = 2});
}

}  // namespace

std::span<const UpdateRule> update_rules() {
  static const std::vector<UpdateRule> kRules = {
      {"adamw", "adamw_sweep", "Adam with decoupled weight decay", {"m", "v"}, kAdamwFields, 14, adamw},
      {"adam_l2",
       "adam_l2_sweep",
       "Adam with weight decay in the gradient",
       {"m", "v"},
       kAdamL2Fields,
       16,
       adam_l2},
      {"sgd", "sgd_sweep", "gradient descent", {}, kSgdFields, 5, sgd},
      {"sgd_momentum",
       "sgd_momentum_sweep",
       "gradient descent with momentum",
       {"buffer"},
       kSgdFields,
       8,
       sgd_momentum},
      {"lion", "lion_sweep", "sign of the interpolated momentum", {"m"}, kLionFields, 10, lion},
  };
  return kRules;
}

const UpdateRule* find_update_rule(std::string_view op) {
  for (const UpdateRule& rule : update_rules())
    if (rule.name == op || rule.multi_tensor == op) return &rule;
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

UpdateForm update_form(std::string_view op, const ir::Attrs& attrs) {
  return {&rule_of(op), dtype_attr(attrs, "rounded"), dtype_attr(attrs, "copy"), attrs.find("key") != nullptr,
          first_element(attrs)};
}

int64_t first_element(const ir::Attrs& attrs) {
  return attrs.find("first") == nullptr ? 0 : attrs.i64("first");
}

std::vector<ValueId> update_op(Builder& b, std::string_view name, ir::Attrs attrs, ValueId param,
                               ValueId grad, std::span<const ValueId> states, ValueId clip, ValueId groups,
                               const UpdateStorage& storage) {
  std::vector<ValueId> operands = {param, grad};
  operands.insert(operands.end(), states.begin(), states.end());
  operands.insert(operands.end(), {clip, groups});
  if (storage.gradient != DType::kF32 && b.type(grad).dtype != storage.gradient)
    attrs.set("rounded", std::string(ir::name(storage.gradient)));
  if (storage.copy) attrs.set("copy", std::string(ir::name(*storage.copy)));
  if (storage.random.valid()) {
    attrs.set("key", storage.key);
    operands.push_back(storage.random);
  }
  return b.ops(name, std::move(operands), std::move(attrs));
}

std::vector<ValueId> update(Builder& b, const UpdateRule& rule, ValueId param, ValueId grad,
                            std::span<const ValueId> states, ValueId clip, ValueId groups, int64_t group,
                            const UpdateStorage& storage) {
  return update_op(b, rule.name, {{"group", group}}, param, grad, states, clip, groups, storage);
}

}  // namespace plimsoll::ops
