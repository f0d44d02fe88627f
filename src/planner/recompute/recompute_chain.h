// The program of a step as input of the recompute search.
#pragma once

#include <vector>

#include "passes/recompute/recompute_values.h"
#include "passes/session_plan.h"
#include "planner/cost/cost_model.h"
#include "planner/programs/loss_chunks.h"
#include "planner/recompute/recompute_search.h"

namespace plimsoll::planner {

/// What a layer, or two blocks one after the other, would gain; of a program that computes nothing again.
struct LayerGain {
  passes::RecomputeUnit unit;
  int64_t bytes = 0;
  double seconds = 0;
};
std::vector<LayerGain> layer_gains(const passes::RecomputeAnalysis& program, const CostModel& model);

/// `program` computes nothing again, `gains` and `chunks` are its own.
/// What is alive is that of the device's arena, from the lifetimes that are planned.
RecomputeChain recompute_chain(const passes::Program& program, const std::vector<LayerGain>& gains,
                               const std::vector<LossChunk>& chunks, const CostModel& model);

/// The same of any program with a backward pass.
AliveByBlock alive_by_block(const passes::Program& program, size_t num_blocks);

}  // namespace plimsoll::planner
