#include "planner/programs/program_estimates.h"

#include <algorithm>
#include <utility>

#include "passes/offload/space_copies.h"
#include "planner/cost/queue_times.h"

namespace plimsoll::planner {

/// The program with its updates cut and its sums of squares where they will stand: what choices of what is
/// offloaded have in common.
struct ProgramEstimates::Arranged {
  std::vector<passes::UpdateCut> cuts;
  bool updates_on_host = false;
  std::shared_ptr<const ir::Graph> graph;
  std::unique_ptr<passes::OffloadOutliner> outliner;
  std::vector<OpCost> costs;  ///< by place in the order
  passes::CopyTimes times;
};

ProgramEstimates::ProgramEstimates(passes::ProgramId id, ir::Graph graph, const passes::Pipeline& pipeline)
    : id_(id),
      graph_(std::make_shared<const ir::Graph>(std::move(graph))),
      last_forward_op_(pipeline.last_forward_op()),
      cuts_updates_(pipeline.options().chunked_update),
      scratch_{pipeline.options().workspace_bytes, pipeline.options().host_workspace_bytes} {}
ProgramEstimates::ProgramEstimates(ProgramEstimates&&) noexcept = default;
ProgramEstimates& ProgramEstimates::operator=(ProgramEstimates&&) noexcept = default;
ProgramEstimates::~ProgramEstimates() = default;

Result<ProgramEstimate> ProgramEstimates::estimate(const passes::OffloadOptions& offload,
                                                   const CostModel& costs, StepCost& cost) {
  PLIMSOLL_ASSIGN(const Arranged* program, arranged(offload, costs));
  passes::OffloadItems items =
      passes::find_offload_items(*program->graph, program->outliner->uses(), offload);
  passes::space_copies(*program->outliner, offload, program->times, items);
  const passes::OffloadOutline outline = program->outliner->outline(offload, items);
  std::vector<double> kernels;
  kernels.reserve(program->costs.size());
  for (size_t place = 0; place < program->costs.size(); ++place)
    kernels.push_back(add_cost(program->costs[place], items.on_host[place], cost));
  if (!items.loads.empty() || !items.stores.empty())
    waiting_part(id_.role, cost) += waiting_seconds(outline.queues, kernels, costs.profile());
  return ProgramEstimate{outline.peak_bytes, outline.num_ops};
}

Result<ProgramEstimates::Arranged*> ProgramEstimates::arranged(const passes::OffloadOptions& offload,
                                                               const CostModel& costs) {
  constexpr size_t kMost = 4;
  std::vector<passes::UpdateCut> cuts;
  if (cuts_updates_ && offload.streams_updates())
    cuts = passes::find_update_cuts(*graph_, {.offload = offload, .workspace_bytes = scratch_.device});
  const auto found = std::ranges::find_if(arranged_, [&](const auto& a) {
    return a->cuts == cuts && a->updates_on_host == offload.updates_on_host;
  });
  if (found != arranged_.end()) {
    std::rotate(found, found + 1, arranged_.end());
    return arranged_.back().get();
  }
  auto made = std::make_unique<Arranged>();
  made->graph = graph_;
  if (!cuts.empty() || offload.updates_on_host) {
    ir::Graph graph = *graph_;
    if (!cuts.empty()) PLIMSOLL_TRY(passes::cut_updates(graph, cuts));
    if (offload.updates_on_host) passes::sum_squares_early(graph);
    made->graph = std::make_shared<const ir::Graph>(std::move(graph));
  }
  made->cuts = std::move(cuts), made->updates_on_host = offload.updates_on_host;
  made->outliner = std::make_unique<passes::OffloadOutliner>(*made->graph, last_forward_op_, scratch_);
  made->costs = op_costs(*made->graph, costs, scratch_.host != nullptr);
  made->times = {kernel_seconds(made->costs), copy_seconds(costs.profile())};
  if (arranged_.size() == kMost) arranged_.erase(arranged_.begin());
  arranged_.push_back(std::move(made));
  return arranged_.back().get();
}

}  // namespace plimsoll::planner
