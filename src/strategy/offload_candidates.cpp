#include "strategy/offload_candidates.h"

#include <algorithm>
#include <utility>

#include "ops/granules.h"
#include "settings/offload.h"

namespace plimsoll::strategy {
namespace {

using ir::MemorySpace;
using passes::kAllBlocks;
using passes::OffloadClass;

/// Arenas with copies hold many more tensors: packing them closer costs more planning than it is worth, and
/// estimates reckon with as much.
constexpr double kTolerance = 1.0 / 64;

void set(Strategy& strategy, const OffloadGroup& group, const OffloadAssignment& assignment, int32_t blocks) {
  for (const OffloadClass c : group) {
    const auto i = static_cast<size_t>(c);
    strategy.offload.spaces[i] = blocks == 0 ? MemorySpace::kDevice : assignment[i];
    strategy.offload.blocks[i] = blocks == 0 ? kAllBlocks : blocks;
  }
}

}  // namespace

OffloadChoices offload_choices(const RunScope& scope, std::vector<settings::BatchSplit> splits) {
  const settings::RunConfig& config = scope.config;
  OffloadChoices choices;
  if (scope.options.purpose != Purpose::kTrain || !settings::chooses_offload(config)) return choices;
  for (const std::string& place : settings::offload_places(config))
    choices.places.push_back(place == "disk" ? MemorySpace::kDisk : MemorySpace::kHostPinned);
  choices.splits = std::move(splits);
  choices.may_recompute = chooses_recompute(config, scope.options);
  choices.in_backward = config.memory.optimizer_in_backward == settings::OptimizerInBackward::kTrue;
  choices.num_blocks = scope.prepared.model->num_blocks();
  return choices;
}

std::vector<OffloadAssignment> offload_assignments(const std::vector<MemorySpace>& places) {
  std::vector<OffloadAssignment> result;
  for (const MemorySpace space : places) {
    if (!result.empty()) {
      OffloadAssignment mixed = result.front();
      for (const OffloadClass c : {OffloadClass::kOptimizer, OffloadClass::kMasters})
        mixed[static_cast<size_t>(c)] = space;
      result.push_back(mixed);
    }
    result.emplace_back().fill(space);
  }
  return result;
}

const std::array<std::vector<OffloadGroup>, 2>& offload_orders() {
  using enum OffloadClass;
  static const std::array<std::vector<OffloadGroup>, 2> kOrders = {
      {{{kOptimizer, kMasters}, {kActivations}, {kGradients}, {kParameters}},
       {{kOptimizer, kMasters}, {kGradients}, {kParameters}, {kActivations}}}};
  return kOrders;
}

Strategy OffloadCandidates::resident(const settings::BatchSplit& split, bool recompute_all,
                                     int64_t slack) const {
  Strategy strategy{.split = split, .chunk_tokens = recompute_all ? ops::kLossRows : 0};
  strategy.optimizer_in_backward = choices_.in_backward;
  strategy.recompute_all = recompute_all;
  strategy.offload.num_blocks = choices_.num_blocks;
  strategy.offload.slack_part = slack;
  strategy.tolerance = kTolerance;
  return strategy;
}

Strategy OffloadCandidates::with_all(Strategy strategy, const OffloadAssignment& assignment) const {
  for (const OffloadGroup& group : offload_orders().front()) set(strategy, group, assignment, kAllBlocks);
  return strategy;
}

Strategy OffloadCandidates::with_steps(Strategy strategy, std::span<const OffloadGroup> order,
                                       const OffloadAssignment& assignment, int32_t count) const {
  const int32_t steps = choices_.num_blocks + 1;
  for (const OffloadGroup& group : order) {
    if (count <= 0) break;
    set(strategy, group, assignment, count >= steps ? kAllBlocks : count);
    count -= steps;
  }
  return strategy;
}

bool OffloadCandidates::offload_more(Strategy& strategy, int attempt) const {
  const int32_t more = std::max(1, choices_.num_blocks / 32) << attempt;
  bool grown = false;
  for (int32_t& blocks : strategy.offload.blocks) {
    if (blocks == kAllBlocks) continue;
    blocks = blocks + more > choices_.num_blocks ? kAllBlocks : blocks + more;
    grown = true;
  }
  if (!grown && strategy.offload.slack_part > 0) {
    strategy.offload.slack_part = kNoSlack;
    return true;
  }
  return grown;
}

std::vector<bool> OffloadCandidates::recomputations() const {
  return choices_.may_recompute ? std::vector<bool>{false, true} : std::vector<bool>{false};
}

}  // namespace plimsoll::strategy
