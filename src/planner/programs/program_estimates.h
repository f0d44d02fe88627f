// Estimates memory and time of a scheduled program for a choice of offloaded tensors
// (passes/offload/offload_outline.h): it is not generated again for each.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "passes/offload/chunked_update.h"
#include "passes/offload/offload_outline.h"
#include "passes/pipeline.h"
#include "passes/program_id.h"
#include "planner/cost/cost_model.h"
#include "planner/cost/step_cost.h"

namespace plimsoll::planner {

struct ProgramEstimate {
  std::array<int64_t, ir::kNumSpaces> alive_bytes = {};  ///< the most of the arenas
  int64_t num_ops = 0;
};

class ProgramEstimates {
 public:
  /// A program in its final order, of which nothing is offloaded yet; `pipeline` has brought it there.
  ProgramEstimates(passes::ProgramId id, ir::Graph graph, const passes::Pipeline& pipeline);
  ProgramEstimates(ProgramEstimates&&) noexcept;
  ProgramEstimates& operator=(ProgramEstimates&&) noexcept;
  ~ProgramEstimates();

  [[nodiscard]] const passes::ProgramId& id() const { return id_; }
  /// Adds what it computes and waits for to `cost`. `costs` are the same each time. Errors: of
  /// cut_updates.
  Result<ProgramEstimate> estimate(const passes::OffloadOptions& offload, const CostModel& costs,
                                   StepCost& cost);

 private:
  struct Arranged;
  Result<Arranged*> arranged(const passes::OffloadOptions& offload, const CostModel& costs);

  passes::ProgramId id_;
  std::shared_ptr<const ir::Graph> graph_;
  ir::OpId last_forward_op_;
  bool cuts_updates_;
  passes::KernelScratch scratch_;
  std::vector<std::unique_ptr<Arranged>> arranged_;  ///< the one that was used last comes last
};

}  // namespace plimsoll::planner
