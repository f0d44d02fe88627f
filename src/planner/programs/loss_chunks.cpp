#include "planner/programs/loss_chunks.h"

#include <algorithm>

#include "base/units.h"
#include "ops/granules.h"
#include "passes/memory/memory_plan.h"

namespace plimsoll::planner {
namespace {

constexpr std::string_view kChunk = "chunk_tokens";

/// Of a loss: dw follows loss and, where the op computes it, dx.
bool computes_dw(const ir::Op& op) {
  const bool has_dx = op.attrs.find("grad") != nullptr && op.attrs.flag("grad");
  return op.outputs.size() > (has_dx ? 2U : 1U);
}

}  // namespace

size_t place_of_loss(const ir::Graph& graph) {
  const auto is_loss = [&](ir::OpId id) { return graph.op(id).def->is_loss; };
  return static_cast<size_t>(std::ranges::find_if(graph.order(), is_loss) - graph.order().begin());
}

std::vector<int64_t> alive_bytes(const passes::Program& program) {
  std::vector<int64_t> change(program.graph.order().size() + 1, 0);
  for (const memory::Buffer& b : arena_buffers(program.binding, ir::MemorySpace::kDevice, nullptr)) {
    change[static_cast<size_t>(b.lower)] += b.size;
    change[static_cast<size_t>(b.upper)] -= b.size;
  }
  for (size_t i = 1; i < change.size(); ++i) change[i] += change[i - 1];
  return change;
}

int64_t chunk_tokens_of(const passes::Program& program) {
  const auto& order = program.graph.order();
  const size_t place = place_of_loss(program.graph);
  if (place == order.size()) return 0;
  const ir::Attrs& attrs = program.graph.op(order[place]).attrs;
  return attrs.find(kChunk) == nullptr ? 0 : attrs.i64(kChunk);
}

std::vector<LossChunk> smaller_chunks(const passes::Program& program, const runtime::Target& target) {
  if (chunk_tokens_of(program) == 0) return {};
  const ir::Graph& graph = program.graph;
  const ir::Op& op = graph.op(graph.order()[place_of_loss(graph)]);
  const ir::OpTypes own = ir::op_types(graph, op);
  const int64_t bytes = target.workspace_bytes(own);
  std::vector<LossChunk> chunks;
  const int64_t unit = ops::loss_chunk_unit(computes_dw(op));
  for (int64_t tokens = op.attrs.i64(kChunk); tokens > unit;) {
    tokens = round_up(ceil_div(tokens, 2), unit);
    ir::Attrs attrs = op.attrs;
    attrs.set(kChunk, tokens);
    const ir::OpTypes types{own.op, own.inputs, own.outputs, attrs};
    const LossChunk chunk{tokens, bytes - target.workspace_bytes(types)};
    if (chunk.saved_bytes > (chunks.empty() ? 0 : chunks.back().saved_bytes)) chunks.push_back(chunk);
  }
  return chunks;
}

double seconds_more(const passes::Program& program, const LossChunk& chunk, const CostModel& model) {
  const ir::Op& op = program.graph.op(program.graph.order()[place_of_loss(program.graph)]);
  ir::Op changed = op;
  changed.attrs.set(kChunk, chunk.tokens);
  StepSeconds own, then;
  model.add(program.graph, op, own);
  model.add(program.graph, changed, then);
  return then.total() - own.total();
}

int64_t most_alive(const passes::Program& program, const LossChunk& chunk) {
  std::vector<int64_t> alive = alive_bytes(program);
  const size_t loss = place_of_loss(program.graph);
  if (loss < alive.size()) alive[loss] -= chunk.saved_bytes;
  return std::ranges::max(alive);
}

}  // namespace plimsoll::planner
