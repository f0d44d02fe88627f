// The read stands right before the op and the assignment right after, so the accumulator is written in place.
#include "passes/training/accumulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "ir/builder.h"
#include "ir/op_def.h"
#include "ops/op_list.h"

namespace plimsoll::passes {
namespace {

using ir::OpId;

struct Edits {
  std::vector<OpId> before, after;
};

Status check(const ir::Graph& graph, const Accumulation& a) {
  const ir::Op& op = graph.op(graph.value(a.contribution).producer);
  const ir::StateDecl* decl = graph.find_state(a.state);
  if (decl == nullptr || decl->type != graph.type(a.contribution))
    return Error{.what = fmt::format("accumulator '{}' is not declared as {}", a.state,
                                     ir::to_string(graph.type(a.contribution))),
                 .where = op.layer};
  const auto output = static_cast<size_t>(graph.value(a.contribution).result_index);
  if (!a.first && ir::accumulator_operand(op, output) < 0)
    return Error{.what = fmt::format("result {} of '{}' cannot be accumulated", output, op.def->name),
                 .where = op.layer};
  return Ok{};
}

}  // namespace

Status accumulate(ir::Graph& graph, std::span<const Accumulation> accumulations) {
  const std::vector<OpId> order = graph.order();
  ir::Builder builder(graph, ops::find_op);
  std::map<OpId, Edits> edits;
  for (const Accumulation& a : accumulations) {
    PLIMSOLL_TRY(check(graph, a));
    const OpId id = graph.value(a.contribution).producer;
    builder.stand_with(graph.op(id));
    if (!a.first) {
      const ir::ValueId held = builder.read(a.state);
      auto& inputs = graph.op(id).inputs;
      const auto operand = static_cast<size_t>(ir::accumulator_operand(
          graph.op(id), static_cast<size_t>(graph.value(a.contribution).result_index)));
      inputs.resize(std::max(inputs.size(), operand + 1));
      inputs[operand] = held;
      edits[id].before.push_back(graph.order().back());
    }
    builder.assign(a.state, a.contribution);
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
