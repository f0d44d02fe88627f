#include "library/front_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "io/json.h"
#include "io/suggest.h"
#include "ops/op_list.h"
#include "ops/structure.h"

namespace plimsoll::library {
namespace {

using ir::ValueId;

const std::vector<const FrontOp*>& all_ops() {
  static const std::vector<const FrontOp*> kAll = [] {
    std::vector<const FrontOp*> all;
    for (const FrontGroup group : {front_layers(), front_norms(), front_images(), front_elementwise(),
                                   front_reductions(), front_shapes(), front_losses()})
      for (const FrontOp& op : group) all.push_back(&op);
    return all;
  }();
  return kAll;
}

bool may_be_left_out(std::string_view operand) { return operand.ends_with('?'); }
bool is_list(std::string_view operand) { return operand.ends_with("..."); }

}  // namespace

std::vector<int64_t> extents(const ir::Shape& shape) { return {shape.dims().begin(), shape.dims().end()}; }

ValueId OpCall::pointwise(std::string expression, Values operands) const {
  return elementwise(operands, [&](Values values) {
    return b.op("pointwise", std::move(values), {{"expr", std::move(expression)}});
  });
}

ValueId OpCall::reshape(ValueId x, std::vector<int64_t> shape) const {
  return extents(type(x).shape) == shape ? x : ops::reshape(b, x, std::move(shape));
}

ValueId OpCall::permute(ValueId x, std::vector<int64_t> axes) const {
  if (std::ranges::is_sorted(axes)) return x;
  if (axes == kToLast) return channels_last(x);
  if (axes == kToFirst) return channels_first(x);
  return b.op("permute", {x}, {{"axes", std::move(axes)}});
}

ValueId OpCall::reduce(std::string_view kind, ValueId x, std::vector<int64_t> axes, bool keeps) const {
  const auto append = [&](ValueId of, std::vector<int64_t> over) {
    ir::Attrs how{{"kind", std::string(kind)}, {"axes", std::move(over)}};
    if (keeps) how.set("keep", true);
    return b.op("reduce", {of}, std::move(how));
  };
  // The axes that are left keep their order where the channels go, or the pixels do.
  const bool has_order =
      keeps || axes.size() == 4 || axes == std::vector<int64_t>{2, 3} || axes == std::vector<int64_t>{1};
  if (!is_image(x) || !has_order) return append(x, std::move(axes));
  for (int64_t& axis : axes) axis = axis == 0 ? 0 : axis == 1 ? 3 : axis - 1;
  std::ranges::sort(axes);
  const ValueId y = append(channels_last(x), std::move(axes));
  return keeps ? channels_first(y) : y;
}

ValueId OpCall::mean_of_all(ValueId x) const {
  std::vector<int64_t> axes(static_cast<size_t>(type(x).shape.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  return reduce("mean", x, std::move(axes), /*keeps=*/false);
}

Result<int64_t> axis_of(const OpCall& call, std::string_view name, int64_t axis, int rank) {
  if (axis < -rank || axis >= rank)
    return call.attrs.wrong(name, fmt::format("an axis of {}, or one from the end", rank));
  return axis < 0 ? axis + rank : axis;
}

const FrontOp* find_front_op(std::string_view name) {
  const auto found = std::ranges::find(all_ops(), name, &FrontOp::name);
  return found == all_ops().end() ? nullptr : *found;
}

Error unknown_front_op(std::string_view name) {
  std::vector<std::string> names;
  for (const FrontOp* op : all_ops()) names.emplace_back(op->name);
  return {ErrorCode::kInvalidArgument,
          fmt::format("there is no op '{}'", name),
          {},
          io::did_you_mean(name, names)};
}

Status check_operands(const FrontOp& op, std::span<const ValueId> inputs) {
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const bool is_there = i < inputs.size() && inputs[i].valid();
    if (!is_there && !may_be_left_out(op.operands[i]))
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{}: operand {} is missing", op.name, op.operands[i])};
  }
  const bool has_list = !op.operands.empty() && is_list(op.operands.back());
  const bool are_all = std::ranges::all_of(inputs, [](ValueId v) { return v.valid(); });
  if (has_list ? !are_all : inputs.size() > op.operands.size())
    return Error{ErrorCode::kInvalidArgument, has_list ? fmt::format("{}: an operand is missing", op.name)
                                                       : fmt::format("{}: {} operands, it takes {}", op.name,
                                                                     inputs.size(), op.operands.size())};
  return Ok{};
}

std::string front_ops_json() {
  io::Tree list = io::Tree::list();
  for (const FrontOp* op : all_ops()) {
    io::Tree entry = io::Tree::map(), operands = io::Tree::list(), attributes = io::Tree::map();
    for (const std::string_view operand : op->operands)
      operands.items.push_back(io::Tree::of(std::string(operand)));
    for (const AttributeSpec& spec : op->attributes) {
      io::Tree value = io::Tree::map();
      value.set("required", io::Tree::of(spec.value.empty()));
      if (auto otherwise = io::parse_json(spec.value.empty() ? "null" : spec.value))
        value.set("default", std::move(*otherwise));
      attributes.set(spec.name, std::move(value));
    }
    entry.set("name", io::Tree::of(std::string(op->name)));
    entry.set("summary", io::Tree::of(std::string(op->summary)));
    entry.set("operands", std::move(operands));
    entry.set("attributes", std::move(attributes));
    list.items.push_back(std::move(entry));
  }
  return io::to_json(list);
}

}  // namespace plimsoll::library
