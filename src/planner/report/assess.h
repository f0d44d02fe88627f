// Turns a planned session into its report: what is taken of which pool, whether it fits, what a step costs.
// Training, evaluation and generation are assessed alike.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "passes/session_plan.h"
#include "planner/cost/cost_model.h"
#include "planner/report/report.h"
#include "runtime/target.h"

namespace plimsoll::planner {

/// What a session runs in.
struct Surroundings {
  int num_threads = 1;
  int64_t host_bytes = 0;  ///< pageable, beside what the session has there: buffers, readers, headers
  /// Phases that write files, "save": streamed from where the tensors lie, so nothing comes on top.
  std::vector<std::string> file_phases = {};
  std::vector<Budget> budgets = {};  ///< the process's first
  int64_t unwritten_ops = 0;         ///< of a sketch: what its programs would have
  bool counts_process = true;        ///< false: what the session takes alone
};

/// The pools, the phases, the process's own, and whether each budget holds.
PlanReport assess(const passes::SessionPlan& session, const runtime::Target& target,
                  const Surroundings& surroundings);

/// One step: what its micro-batches compute and move together.
struct Work {
  double flops = 0, recompute_flops = 0, bytes = 0, network_bytes = 0;
  int64_t units = 0;            ///< of the task
  std::string unit = "tokens";  ///< what they are
  int64_t micro_batch_size = 1, grad_accum_steps = 1;
  StepSeconds seconds = {};
  std::string rates = "uncalibrated";  ///< where the seconds come from: choices.rates
  std::string profile = {};            ///< and whose they are
};

/// Fills the figures of a step.
void describe_work(const Work& work, PlanReport& report);

}  // namespace plimsoll::planner
