// What a step computes and moves, added up over its programs' ops.
#pragma once

#include <span>

#include "ir/graph.h"
#include "planner/cost_model.h"

namespace plimsoll::planner {

/// Work of one micro-batch's programs, from the graphs; with buckets those of the longest.
struct StepCost {
  double flops = 0;  ///< of the model, forward and backward, as written (without recompute)
  double recompute_flops = 0;
  StepSeconds seconds = {};  ///< of those, by the model; what is nearly free takes none: see add_cost
  double bytes = 0;
  double update_flops = 0;  ///< of norm, clip and update, once a step
  double update_bytes = 0;
  StepSeconds update_seconds = {};
};

/// Adds the ops of a program, and under kCopies what it waits for copies and for the host (queue_times.h). A
/// norm or an activation that is computed again from kept values moves no bytes of its own: it reads what the
/// op behind it reads as well, and leaves its result in the cache. (Measured, it is 2 % of W1's step and
/// nothing that shows of W2's: bench/run-versus --other memory.recompute=none.)
void add_cost(const ir::Graph& graph, const CostModel& model, StepCost& cost);

/// Seconds of computing these ops, in the graph's order, again, as add_cost has it of their clones.
double seconds_again(const ir::Graph& graph, std::span<const ir::OpId> ops, const CostModel& model);

}  // namespace plimsoll::planner
