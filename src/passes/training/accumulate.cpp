// The read stands right before the op and the assignment right after, so the accumulator is written in place.
#include "passes/training/accumulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/at.h"
#include "ir/builder.h"
#include "ir/op_def.h"
#include "ops/op_list.h"

namespace plimsoll::passes {
namespace {

using ir::OpId;

struct Edits {
  std::vector<OpId> before, after;
};

ir::TensorType accumulator_type(const ir::Graph& graph, const Accumulation& a) {
  ir::TensorType type = graph.type(a.contribution);
  if (!a.random.empty()) type.dtype = ir::DType::kBf16;
  return type;
}

Status check(const ir::Graph& graph, const Accumulation& a) {
  const ir::Op& op = graph.op(graph.value(a.contribution).producer);
  const ir::StateDecl* decl = graph.find_state(a.state);
  const ir::TensorType type = accumulator_type(graph, a);
  if (decl == nullptr || decl->type != type)
    return Error{.what = fmt::format("accumulator '{}' is not declared as {}", a.state, ir::to_string(type)),
                 .where = op.layer};
  return Ok{};
}

/// Whether ops that are needed read each value: those that have an effect, or that contributions come from.
std::vector<bool> read_elsewhere(const ir::Graph& graph, std::span<const Accumulation> accumulations) {
  std::vector<bool> needed(graph.num_values(), false), read(graph.num_values(), false);
  for (const Accumulation& a : accumulations) {
    if (needed[at(a.contribution)]) read[at(a.contribution)] = true;  // of two parameters
    needed[at(a.contribution)] = true;
  }
  for (auto id = graph.order().rbegin(); id != graph.order().rend(); ++id) {
    const ir::Op& op = graph.op(*id);
    const bool is_live =
        op.def->has_effect || std::ranges::any_of(op.outputs, [&](ir::ValueId v) { return needed[at(v)]; });
    for (const ir::ValueId v : op.inputs)
      if (is_live && v.valid()) needed[at(v)] = read[at(v)] = true;
  }
  return read;
}

/// The operand through which the contribution's op may go on from the accumulator; -1 where it has none, or
/// where others read what it gives.
int own_accumulator(const ir::Graph& graph, ir::ValueId contribution, const std::vector<bool>& read) {
  const ir::Op& op = graph.op(graph.value(contribution).producer);
  return read[at(contribution)]
             ? -1
             : ir::accumulator_operand(op, static_cast<size_t>(graph.value(contribution).result_index));
}

/// The accumulator's next value: the contribution, whose op goes on from what is held, or a sum of both.
ir::ValueId continued(ir::Builder& builder, const Accumulation& a, int operand, Edits& edits) {
  ir::Graph& graph = builder.graph();
  const ir::ValueId held = builder.read(a.state);
  if (operand < 0) {
    edits.after.push_back(graph.order().back());
    const ir::Attrs nothing{{"kind", std::string("sum")}, {"axes", std::vector<int64_t>{}}, {"keep", true}};
    const ir::ValueId sum = builder.op("reduce", {a.contribution, held}, nothing);
    edits.after.push_back(graph.order().back());
    return sum;
  }
  edits.before.push_back(graph.order().back());
  auto& inputs = graph.op(graph.value(a.contribution).producer).inputs;
  inputs.resize(std::max(inputs.size(), at(operand) + 1));
  inputs[at(operand)] = held;
  return a.contribution;
}

/// The accumulator's next value in bf16: the contribution, rounded onto what is held.
ir::ValueId rounded(ir::Builder& builder, const Accumulation& a, Edits& edits) {
  std::vector<ir::ValueId> inputs = {a.contribution, builder.read(a.random)};
  edits.after.push_back(builder.graph().order().back());
  if (!a.first) {
    inputs.push_back(builder.read(a.state));
    edits.after.push_back(builder.graph().order().back());
  }
  const ir::ValueId sum = builder.op("accumulate", std::move(inputs), {{"key", a.key}});
  edits.after.push_back(builder.graph().order().back());
  return sum;
}

}  // namespace

Status accumulate(ir::Graph& graph, std::span<const Accumulation> accumulations) {
  const std::vector<OpId> order = graph.order();
  ir::Builder builder(graph, ops::find_op);
  std::map<OpId, Edits> edits;
  const std::vector<bool> read = read_elsewhere(graph, accumulations);
  for (const Accumulation& a : accumulations) {
    PLIMSOLL_TRY(check(graph, a));
    const OpId id = graph.value(a.contribution).producer;
    builder.stand_with(graph.op(id));
    const ir::ValueId value =
        !a.random.empty() ? rounded(builder, a, edits[id])
        : a.first         ? a.contribution
                          : continued(builder, a, own_accumulator(graph, a.contribution, read), edits[id]);
    builder.assign(a.state, value);
    PLIMSOLL_TRY(builder.status());
    edits[id].after.push_back(graph.order().back());
  }
  std::vector<OpId> with_edits;
  for (const OpId id : order) {
    const auto it = edits.find(id);
    if (it != edits.end())
      with_edits.insert(with_edits.end(), it->second.before.begin(), it->second.before.end());
    with_edits.push_back(id);
    if (it != edits.end())
      with_edits.insert(with_edits.end(), it->second.after.begin(), it->second.after.end());
  }
  graph.set_order(std::move(with_edits));
  return Ok{};
}

}  // namespace plimsoll::passes
