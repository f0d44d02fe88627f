#include "passes/training/accumulate_pieces.h"

#include <fmt/format.h>

#include <map>
#include <vector>

#include "ir/builder.h"
#include "ir/op_def.h"
#include "ops/elementwise.h"
#include "ops/op_list.h"
#include "ops/ranks.h"

namespace plimsoll::passes {
namespace {

using ir::OpId;

Status check(const ir::Graph& graph, const PieceAccumulation& a, int64_t ranks) {
  const ir::TensorType piece{ir::DType::kF32,
                             {ops::piece_elements(graph.type(a.gradient).num_elements(), ranks)}};
  const ir::StateDecl* decl = graph.find_state(a.state);
  if (decl != nullptr && decl->type == piece) return Ok{};
  return Error{.what = fmt::format("accumulator '{}' is not declared as {}", a.state, ir::to_string(piece)),
               .where = graph.op(graph.value(a.gradient).producer).layer};
}

void append(ir::Builder& b, const PieceAccumulation& a, int64_t ranks) {
  const ir::ValueId piece = ops::sum_ranks(b, ops::exchange(b, a.gradient, ranks));
  b.assign(a.state, a.first ? piece : ops::add(b, b.read(a.state), piece));
}

}  // namespace

Status accumulate_pieces(ir::Graph& graph, std::span<const PieceAccumulation> accumulations, int64_t ranks) {
  const std::vector<OpId> order = graph.order();
  ir::Builder builder(graph, ops::find_op);
  std::map<OpId, std::vector<OpId>> behind;
  for (const PieceAccumulation& a : accumulations) {
    PLIMSOLL_TRY(check(graph, a, ranks));
    const OpId id = graph.value(a.gradient).producer;
    builder.stand_with(graph.op(id));
    const size_t before = graph.order().size();
    append(builder, a, ranks);
    PLIMSOLL_TRY(builder.status());
    const auto begin = graph.order().begin() + static_cast<std::ptrdiff_t>(before);
    behind[id].insert(behind[id].end(), begin, graph.order().end());
  }
  std::vector<OpId> edited;
  for (const OpId id : order) {
    edited.push_back(id);
    if (const auto it = behind.find(id); it != behind.end())
      edited.insert(edited.end(), it->second.begin(), it->second.end());
  }
  graph.set_order(std::move(edited));
  return Ok{};
}

}  // namespace plimsoll::passes
