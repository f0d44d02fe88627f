#include "library/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "io/json.h"
#include "library/attributes.h"
#include "library/front_ops.h"
#include "library/invalid.h"
#include "library/traced_model.h"
#include "ops/elementwise.h"
#include "ops/loss.h"
#include "ops/op_list.h"
#include "ops/operands.h"
#include "planner/programs/step_programs.h"

namespace plimsoll::library {
namespace {

using ir::DType;
using ir::StateClass;
using ir::ValueId;

Result<ir::Shape> checked_shape(const std::string& name, std::span<const int64_t> shape) {
  const std::vector<int64_t> extents =
      shape.empty() ? std::vector<int64_t>{1} : std::vector<int64_t>(shape.begin(), shape.end());
  const auto checked = ops::shape_of(extents);
  if (!checked)
    return invalid(fmt::format("{}: a shape has 1 to {} positive extents", name, ir::Shape::kMaxRank));
  return *checked;
}

Result<DType> element_type(const std::string& name, std::string_view dtype) {
  if (dtype == "float32") return DType::kF32;
  if (dtype == "int32" || dtype == "int64" || dtype == "bool") return DType::kI32;
  return invalid(fmt::format("{}: the type '{}' is none that it can have", name, dtype),
                 "choose float32, int32 or int64");
}

Result<FirstValue> first_value(const std::string& word) {
  for (const auto& [name, value] : {std::pair<std::string_view, FirstValue>{"zeros", FirstValue::kZeros},
                                    {"ones", FirstValue::kOnes},
                                    {"constant", FirstValue::kConstant},
                                    {"uniform", FirstValue::kUniform},
                                    {"normal", FirstValue::kNormal}})
    if (word == name) return value;
  return invalid(fmt::format("init '{}'", word), "choose zeros, ones, constant, uniform or normal");
}

}  // namespace

std::string_view type_name(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "float32";
    case DType::kBf16:
      return "bfloat16";
    case DType::kF16:
      return "float16";
    case DType::kI32:
      return "int32";
    default:
      return ir::name(dtype);
  }
}

Result<ParameterOptions> parse_parameter_options(std::string_view json) {
  static constexpr AttributeSpec kSpecs[] = {{"init", R"("zeros")"}, {"value", "0"},      {"bound", "1"},
                                             {"std", "1"},           {"trained", "true"}, {"kind", "null"}};
  PLIMSOLL_ASSIGN(Attributes given, Attributes::read("parameter", json, kSpecs));
  ParameterOptions options;
  PLIMSOLL_ASSIGN(options.init, first_value(given.text("init")));
  if (options.init == FirstValue::kConstant) options.number = given.number("value");
  if (options.init == FirstValue::kUniform) options.number = given.number("bound");
  if (options.init == FirstValue::kNormal) options.number = given.number("std");
  options.trained = given.flag("trained");
  if (given.has("kind")) {
    const std::string word =
        given.word("kind", {"vector", "linear", "embedding", "filters", "buffer", "count"});
    options.is_count = word == "count";
    options.is_buffer = word == "buffer" || options.is_count;
    options.kind = word == "linear"      ? ir::ParameterKind::kLinear
                   : word == "embedding" ? ir::ParameterKind::kTable
                   : word == "filters"   ? ir::ParameterKind::kFilters
                                         : ir::ParameterKind::kVector;
  }
  PLIMSOLL_TRY(given.status());
  return options;
}

ir::ParameterKind TracedParameter::kind() const {
  if (options.kind) return *options.kind;
  return shape.rank() == 1 ? ir::ParameterKind::kVector : ir::ParameterKind::kLinear;
}

ValueId Trace::read_state(const std::string& name, const ir::TensorType& type, StateClass state_class) {
  ir::Builder b(graph_, ops::find_op);
  return b.state({name, type, state_class});
}

Result<ValueId> Trace::input(const std::string& name, std::string_view dtype,
                             std::span<const int64_t> shape) {
  PLIMSOLL_TRY(check_open());
  if (name.empty()) return invalid("an input has no name");
  if (std::ranges::find(inputs_, name, &TracedInput::name) != inputs_.end())
    return invalid(fmt::format("input '{}' is there already", name));
  PLIMSOLL_ASSIGN(const DType type, element_type(name, dtype));
  PLIMSOLL_ASSIGN(const ir::Shape checked, checked_shape(name, shape));
  const ValueId value = read_state(planner::input_state(name), {type, checked}, StateClass::kInput);
  inputs_.push_back({name, {type, checked}, value});
  return value;
}

Result<ValueId> Trace::parameter(const std::string& name, std::span<const int64_t> shape,
                                 const ParameterOptions& options) {
  PLIMSOLL_TRY(check_open());
  if (name.empty()) return invalid("a parameter has no name");
  PLIMSOLL_ASSIGN(const ir::Shape checked, checked_shape(name, shape));
  if (options.is_buffer) return buffer(name, checked, options);
  const auto found = std::ranges::find(parameters_, name, &TracedParameter::name);
  if (found != parameters_.end()) {
    if (found->shape == checked && found->options == options) return found->shown;
    return invalid(
        fmt::format("parameter '{}' is there already, {} and not {}{}", name, ir::to_string(found->shape),
                    ir::to_string(checked), found->shape == checked ? ", with other options" : ""),
        "a name is used once, or for one parameter that is shared");
  }
  if (graph_.find_state(name) != nullptr) return invalid(fmt::format("the name '{}' is taken", name));
  TracedParameter parameter{name, checked, options, {}, {}};
  const bool are_filters = parameter.kind() == ir::ParameterKind::kFilters;
  if (are_filters && checked.rank() != 4)
    return invalid(
        fmt::format("parameter '{}' is {}, and filters have four axes", name, ir::to_string(checked)),
        "[out, in / groups, height, width]");
  parameter.value = read_state(name, {DType::kF32, parameter.stored_shape()}, StateClass::kParameter);
  parameter.shown = are_filters ? shown_filters(parameter.value) : parameter.value;
  parameters_.push_back(parameter);
  return parameter.shown;
}

Result<ValueId> Trace::constant(const std::string& name, std::string_view dtype,
                                std::span<const int64_t> shape, std::span<const std::byte> data) {
  PLIMSOLL_TRY(check_open());
  PLIMSOLL_ASSIGN(const DType type, element_type(name, dtype));
  PLIMSOLL_ASSIGN(const ir::Shape checked, checked_shape(name, shape));
  const ir::TensorType typed{type, checked};
  if (static_cast<int64_t>(data.size()) != typed.bytes().count)
    return invalid(fmt::format("{}: {} bytes for {}", name, data.size(), ir::to_string(typed)));
  return own_constant(typed, {data.begin(), data.end()});
}

ValueId Trace::own_constant(ir::TensorType type, std::vector<std::byte> data) {
  for (const TracedConstant& known : constants_)
    if (known.type == type && known.data == data) return known.value;
  std::string name = fmt::format("constant.{}", constants_.size());
  const ValueId value = read_state(name, type, StateClass::kConstant);
  constants_.push_back({std::move(name), type, std::move(data), value});
  return value;
}

ValueId Trace::random() {
  if (!random_.valid())
    random_ = read_state(std::string(planner::kRandomState), {DType::kI32, {4}}, StateClass::kScalars);
  return random_;
}

int64_t Trace::next_random_key() {
  return ops::random_key(scopes_.layer(), fmt::format("draw.{}", draws_++));
}

Status Trace::check_open() const {
  if (loss_.valid()) return invalid("the loss is set: no op and no tensor follows it");
  return Ok{};
}

Status Trace::check_values(std::string_view op, std::span<const ValueId> values) const {
  for (const ValueId v : values)
    if (v.valid() && static_cast<size_t>(v.index) >= graph_.num_values())
      return invalid(fmt::format("{}: {} is no value of this builder", op, v.index));
  return Ok{};
}

Result<Values> Trace::op(std::string_view name, std::span<const ValueId> inputs,
                         std::string_view attributes) {
  PLIMSOLL_TRY(check_open());
  PLIMSOLL_TRY(check_values(name, inputs));
  const FrontOp* def = find_front_op(name);
  if (def == nullptr) return unknown_front_op(name);
  PLIMSOLL_TRY(check_operands(*def, inputs));
  PLIMSOLL_ASSIGN(Attributes attrs, Attributes::read(name, attributes, def->attributes));
  ir::Builder builder(graph_, ops::find_op);
  const auto scope = builder.block(scopes_.block(), "");
  builder.set_layer(scopes_.layer());
  const size_t known = graph_.num_ops();
  OpCall call{*this, builder, inputs, attrs};
  Result<Values> results = def->build(call);
  const std::string where = scopes_.layer();
  const auto at_scope = [&](Error error) {
    if (error.where.empty()) error.where = where;
    return error;
  };
  if (!attrs.status()) return at_scope(attrs.status().error());
  if (!results) return at_scope(std::move(results).error());
  if (Status built = builder.status(); !built) return at_scope(std::move(built).error());
  if (const std::string precision = scopes_.precision(); !precision.empty())
    for (size_t i = known; i < graph_.num_ops(); ++i)
      if (graph_.op(ir::OpId{static_cast<int32_t>(i)}).def->autocast == ir::AutocastClass::kLowPrecision)
        products_[i] = precision;
  return results;
}

std::set<std::string> Trace::precisions() const {
  const std::vector<bool> needed = needed_ops(*this);
  std::set<std::string> found;
  for (const auto& [op, precision] : products_)
    if (needed[op]) found.insert(precision);
  return found;
}

Status Trace::push_scope(std::string_view kind, std::string_view argument) {
  return scopes_.push(kind, argument);
}

Status Trace::set_loss(ValueId loss) {
  PLIMSOLL_TRY(check_values("loss", {&loss, 1}));
  if (loss_.valid()) return invalid("the loss is set already");
  if (!loss.valid()) return invalid("the loss is no value");
  const ir::TensorType& type = graph_.type(loss);
  if (!ir::is_floating(type.dtype) || type.num_elements() != 1)
    return invalid(fmt::format("the loss is {}, not one number", ir::to_string(type)),
                   "return a mean or a sum over all elements");
  loss_ = loss;
  return Ok{};
}

Result<ir::TensorType> Trace::type(ValueId value) const {
  PLIMSOLL_TRY(check_values("type", {&value, 1}));
  if (!value.valid()) return invalid("an operand that is left out has no type");
  return graph_.type(value);
}

std::optional<MeanLoss> Trace::mean_loss() const {
  const auto found = means_.find(loss_.index);
  return found == means_.end() ? std::nullopt : std::optional(found->second);
}

const TracedParameter* Trace::find_parameter(ValueId value) const {
  const auto found = std::ranges::find(parameters_, value, &TracedParameter::value);
  return found == parameters_.end() ? nullptr : &*found;
}

Status Trace::note_range(ValueId index, int64_t below, bool ignores, std::string_view op) {
  ValueId source = index;
  for (;;) {  // elements of views are their operand's
    const ir::Op& producer = graph_.op(graph_.value(source).producer);
    if (producer.def->elements == ir::Elements::kJoined) {
      for (const ValueId part : producer.inputs) PLIMSOLL_TRY(note_range(part, below, ignores, op));
      return Ok{};
    }
    if (producer.def->elements == ir::Elements::kComputed || producer.inputs.empty()) break;
    source = producer.inputs[0];
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].value != source) continue;
    ranges_.push_back({i, below, ignores});
    return Ok{};
  }
  for (const TracedConstant& constant : constants_) {
    if (constant.value != source) continue;
    for (int64_t i = 0; i < constant.type.num_elements(); ++i) {
      int32_t element = 0;
      std::memcpy(&element, constant.data.data() + i * int64_t{sizeof(element)}, sizeof(element));
      const bool is_ignored = ignores && element == ops::kIgnoreTarget;
      if (!is_ignored && (element < 0 || element >= below))
        return invalid(fmt::format("{}: index {} is not in [0, {})", op, element, below));
    }
    return Ok{};
  }
  return invalid(fmt::format("{}: its index is computed, so that nobody can check it", op),
                 "indices are an input of integers, a part of one, or a constant");
}

}  // namespace plimsoll::library
