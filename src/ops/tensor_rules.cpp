// The list of rules that look beyond one element, and the ops that follow from them.
#include "ops/tensor_rules.h"

#include <fmt/format.h>

#include <cmath>

#include "ops/operands.h"
#include "ops/philox.h"
#include "ops/rounding.h"
#include "ops/update_draws.h"

namespace plimsoll::ops {
namespace {

int64_t steps_of(const ir::Attrs& attrs) {
  return attrs.find("steps") == nullptr ? kMuonSteps : attrs.i64("steps");
}

RuledTensor tensor_of(const Shape& shape, const ir::Attrs& attrs) {
  return {shape, attrs.ints("parts"), steps_of(attrs)};
}

std::vector<std::string_view> operand_names(const TensorForm& form) {
  std::vector<std::string_view> names = {"param", "grad"};
  for (const RuleState& state : form.rule->states) names.push_back(state.name);
  names.insert(names.end(), {"clip", "groups"});
  if (form.draws) names.emplace_back("random");
  return names;
}

/// clip, groups and random, which begin at operand `first`.
void check_shared(Operands& in, const TensorForm& form, const OpTypes& t, size_t first) {
  in.same_dtype(first, DType::kF32).same_dtype(first + 1, DType::kF32).shaped(first, Shape{1});
  if (form.draws) in.same_dtype(first + 2, DType::kI32);
  if (form.draws && t.inputs[first + 2].shape != Shape{kOwnDraws}) in.shaped(first + 2, Shape{4});
  for (const std::string_view name : {"rounded", "copy"}) check_short(in, t, name);
  const Shape& groups = t.inputs[first + 1].shape;
  in.require(groups.rank() == 2 && groups.dim(1) >= form.rule->num_fields,
             fmt::format("groups must be [n,{}]", form.rule->num_fields), {first + 1});
  const int64_t group = t.attrs.i64("group");
  in.require(group >= 0 && group < groups.dim(0), fmt::format("group {} is not in the table", group),
             {first + 1});
  in.require(form.first == 0 || (form.rule->block_elements > 0 && form.first > 0 &&
                                 form.first % form.rule->block_elements == 0),
             "a window begins at a whole block of the rule");
  in.require(form.steps > 0, "steps must be positive");
}

void check_state(Operands& in, const RuleState& state, const RuledTensor& tensor, const OpTypes& t,
                 size_t operand) {
  in.shaped(operand, state.shape_of(tensor));
  if (state.dtype)
    in.same_dtype(operand, *state.dtype);
  else
    in.require(ir::is_computable(t.inputs[operand].dtype), "states are f32, bf16 or f16", {operand});
}

Result<Types> infer(const OpTypes& t) {
  const TensorForm form = tensor_form(t.op, t.attrs);
  const auto names = operand_names(form);
  Operands in(t, names.size(), names);
  if (!in) return in.error();
  const TensorType& param = t.inputs[0];
  const RuledTensor tensor = tensor_of(param.shape, t.attrs);
  int64_t rows = 0;
  bool is_whole = !tensor.parts.empty();
  for (const int64_t part : tensor.parts)
    is_whole = is_whole && part > 0 && (rows += part) <= param.shape.dim(0);
  in.require(is_whole && rows == param.shape.dim(0), "parts must be rows of param, all of them", {0});
  if (!in) return in.results({});
  in.require(ir::is_computable(param.dtype) && ir::is_computable(t.inputs[1].dtype),
             "param and grad are f32, bf16 or f16", {0, 1});
  in.shaped(1, param.shape);
  Types results = {param};
  for (size_t s = 0; s < form.rule->states.size(); ++s) {
    check_state(in, form.rule->states[s], tensor, t, 2 + s);
    results.push_back(t.inputs[2 + s]);
  }
  check_shared(in, form, t, form.rule->num_operands());
  for (size_t r = 0; r < results.size(); ++r) {
    const bool is_fixed = r > 0 && form.rule->states[r - 1].dtype.has_value();  // rounded by the rule
    in.require(!form.draws || is_fixed || results[r].dtype != DType::kF16,
               "stochastic rounding is to bf16, not to f16");
  }
  in.require(!form.copy || param.dtype == DType::kF32, "a copy is of an f32 parameter");
  if (form.copy) results.push_back({*form.copy, param.shape});
  return in.results(std::move(results));
}

Cost cost(const OpTypes& t) {
  return cost_of(t, find_tensor_rule(t.op)->flops(tensor_of(t.inputs[0].shape, t.attrs)));
}

/// `values` into result `result`, drawn for where it is bf16.
void put(RefContext& ctx, const std::optional<UpdateDraws>& stream, const std::vector<double>& values,
         size_t result) {
  RefTensor& out = *ctx.outputs[result];
  const bool draws = stream && out.type.dtype == DType::kBf16;
  const size_t first = stream ? at(stream->first) : 0;
  const auto word = [&](size_t element) { return random_words(stream->stream, element / 4)[element % 4]; };
  for (size_t i = 0; i < values.size(); ++i)
    out.data[i] = draws ? rounded_stochastically(values[i], update_bits(word(first + i), result)) : values[i];
}

void reference(RefContext& ctx) {
  const TensorForm form = tensor_form(ctx.op.def->name, ctx.op.attrs);
  const size_t clip_operand = form.rule->num_operands();
  const double clip = ctx.inputs[clip_operand]->data[0];
  const RefTensor& table = *ctx.inputs[clip_operand + 1];
  std::vector<double> param = ctx.inputs[0]->data, gradient = ctx.inputs[1]->data;
  std::vector<std::vector<double>> states;
  for (size_t s = 0; s < form.rule->states.size(); ++s) states.push_back(ctx.inputs[2 + s]->data);
  std::optional<UpdateDraws> stream;
  if (!std::isnan(clip)) {
    for (double& g : gradient) g = (form.rounded ? rounded(g, *form.rounded) : g) * clip;
    const RuledTensor tensor = tensor_of(ctx.inputs[0]->type.shape, ctx.op.attrs);
    TensorUpdate update{tensor, &table.data[at(ctx.op.attrs.i64("group") * table.type.shape.dim(1))],
                        gradient, param, states};
    form.rule->apply(update);
    if (form.draws) {
      const auto& words = ctx.inputs[clip_operand + 2]->data;
      const auto word = [&](size_t i) { return static_cast<uint32_t>(static_cast<int32_t>(words[i])); };
      stream = update_draws(std::ssize(words), word, ctx.op.attrs.i64("key"), form.first);
    }
  }
  put(ctx, stream, param, 0);
  for (size_t s = 0; s < states.size(); ++s) put(ctx, stream, states[s], 1 + s);
  if (form.copy) ctx.outputs[1 + states.size()]->data = param;
}

OpDef op_of(const TensorRule& rule) {
  const auto operands = static_cast<int>(rule.num_operands() + 2);
  OpDef def = {.name = rule.name,
               .summary = rule.summary,
               .work = {WorkKind::kUpdate},
               .min_inputs = operands,
               .max_inputs = operands + 1,
               .attrs = {int_attr("group"),
                         ints_attr("parts"),
                         {"steps", AttrSpec::Kind::kInt, false},
                         {"rounded", AttrSpec::Kind::kString, false},
                         {"copy", AttrSpec::Kind::kString, false},
                         {"key", AttrSpec::Kind::kInt, false},
                         {"first", AttrSpec::Kind::kInt, false}},
               .infer = infer,
               .cost = cost,
               .reference = reference,
               .autocast = ir::AutocastClass::kF32,
               .recompute = ir::RecomputeClass::kNever,
               .random = operands};
  for (int32_t r = 0; r < static_cast<int32_t>(rule.num_results()); ++r)
    def.consumes.push_back({r, r == 0 ? 0 : 1 + r});
  return def;
}

}  // namespace

std::span<const TensorRule> tensor_rules() {
  static const std::vector<TensorRule> kRules = [] {
    std::vector<TensorRule> rules = {adamw_8bit_rule(), muon_rule()};
    for (TensorRule& rule : adamw_fp8_rules()) rules.push_back(std::move(rule));
    for (TensorRule& rule : adafactor_rules()) rules.push_back(std::move(rule));
    return rules;
  }();
  return kRules;
}

const TensorRule* find_tensor_rule(std::string_view op) {
  for (const TensorRule& rule : tensor_rules())
    if (rule.name == op) return &rule;
  return nullptr;
}

OpGroup tensor_rules_ops() {
  static const std::vector<OpDef> kOps = [] {
    std::vector<OpDef> defs;
    for (const TensorRule& rule : tensor_rules()) defs.push_back(op_of(rule));
    return defs;
  }();
  return kOps;
}

TensorForm tensor_form(std::string_view op, const ir::Attrs& attrs) {
  return {find_tensor_rule(op),         dtype_attr(attrs, "rounded"), dtype_attr(attrs, "copy"),
          attrs.find("key") != nullptr, first_element(attrs),         steps_of(attrs)};
}

std::vector<ValueId> update_tensor(Builder& b, const TensorRule& rule, ValueId param, ValueId grad,
                                   std::span<const ValueId> states, ValueId clip, ValueId groups,
                                   int64_t group, const RuledTensor& tensor, const UpdateStorage& storage) {
  ir::Attrs attrs = {{"group", group}, {"parts", tensor.parts}};
  if (rule.iterates && tensor.steps != kMuonSteps) attrs.set("steps", tensor.steps);
  return update_op(b, rule.name, std::move(attrs), param, grad, states, clip, groups, storage);
}

}  // namespace plimsoll::ops
