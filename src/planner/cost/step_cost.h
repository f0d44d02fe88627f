// Sums operations and bytes of a step over its programs' ops.
#pragma once

#include <span>
#include <vector>

#include "ir/graph.h"
#include "ir/op_def.h"
#include "passes/program_id.h"
#include "planner/cost/cost_model.h"

namespace plimsoll::planner {

/// Work of one micro-batch's programs, from the graphs; with buckets those of the longest.
struct StepCost {
  double flops = 0;  ///< of the model, forward and backward, as written (without recompute)
  double recompute_flops = 0;
  StepSeconds seconds = {};  ///< of those, by the model; what is nearly free takes none: see add_cost
  double bytes = 0;
  double network_bytes = 0;  ///< to or from this rank
  double update_flops = 0;   ///< of norm, clip and update, once a step
  double update_bytes = 0, update_network_bytes = 0;
  StepSeconds update_seconds = {};
};

/// What an op costs, whoever runs it.
struct OpCost {
  ir::Cost work;
  StepSeconds seconds;      ///< of the device
  double host_seconds = 0;  ///< of the host; 0 where nobody asked
  double network_bytes = 0;
  bool is_update = false, recomputed = false, nearly_free = false;
};
/// By place in the order; copies cost nothing. `with_host`: of updates the host's seconds too.
std::vector<OpCost> op_costs(const ir::Graph& graph, const CostModel& model, bool with_host);
/// Of the device, by place.
std::vector<double> kernel_seconds(const std::vector<OpCost>& ops);
/// Adds one; returns the seconds that its kernel takes, on the device or on the host.
double add_cost(const OpCost& op, bool on_host, StepCost& cost);
/// Where a program's waiting is counted.
double& waiting_part(passes::ProgramRole role, StepCost& cost);

/// Adds the ops of a program, and under kCopies what it waits for copies and for the host (queue_times.h). A
/// norm or an activation that is computed again from kept values moves no bytes of its own: it reads what the
/// op behind it reads as well, and leaves its result in the cache. (Measured, it is 2 % of W1's step and
/// nothing that shows of W2's: bench/run-versus --other memory.recompute=none.)
void add_cost(const ir::Graph& graph, passes::ProgramRole role, const CostModel& model, StepCost& cost);

/// Seconds of computing these ops, in the graph's order, again, as add_cost has it of their clones.
double seconds_again(const ir::Graph& graph, std::span<const ir::OpId> ops, const CostModel& model);

}  // namespace plimsoll::planner
