// Head and loss in smaller chunks of tokens: fewer logits at once, bit-identical results.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/op_def.h"
#include "passes/session_plan.h"
#include "planner/cost/cost_model.h"
#include "runtime/target.h"

namespace plimsoll::planner {

struct LossChunk {
  int64_t tokens = 0;       ///< a multiple of ops::loss_chunk_unit
  int64_t saved_bytes = 0;  ///< of the op's workspace, beside the program's
};

/// Tokens of a chunk; 0 where head and loss are no one op.
int64_t chunk_tokens_of(const passes::Program& program);

/// Halves of the program's chunks down to ops::loss_chunk_unit, the largest first, those that save bytes;
/// none where head and loss are no one op.
std::vector<LossChunk> smaller_chunks(const passes::Program& program, const runtime::Target& target);

/// What head and loss take longer with those chunks, as the plan's own estimate has it.
double seconds_more(const passes::Program& program, const LossChunk& chunk, const CostModel& model);

/// Bytes of the device's arena that are alive at each place of the order.
std::vector<int64_t> alive_bytes(const passes::Program& program);

/// Where head and loss stand in the order; its length where there is no loss.
size_t place_of_loss(const ir::Graph& graph);

/// What is alive at most with those chunks.
int64_t most_alive(const passes::Program& program, const LossChunk& chunk);

}  // namespace plimsoll::planner
