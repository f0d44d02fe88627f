#include "train/choose_offload.h"

#include <algorithm>
#include <string>
#include <utility>

#include "planner/budget.h"
#include "settings/offload.h"

namespace plimsoll::train {
namespace {

std::vector<Tree> ladder(const RunConfig& config) {
  std::vector<Tree> rungs;
  for (const std::string& place : offload_places(config)) {
    Tree classes = Tree::map();
    // What moves once a step first, what each layer waits for last; masters move with the optimizer's states.
    for (const std::string added : {"optimizer", "activations", "gradients", "parameters"}) {
      classes.set(added, Tree::of(place));
      if (added == "optimizer") classes.set("masters", Tree::of(place));
      rungs.push_back(classes);
    }
  }
  return rungs;
}

}  // namespace

std::vector<OffloadCandidate> offload_candidates(const RunConfig& config, const PrepareOptions& options,
                                                 const std::vector<BatchSplit>& splits) {
  constexpr size_t kMostSizes = 4;
  if (options.purpose != Purpose::kTrain || !options.finds_least || !chooses_offload(config)) return {};
  std::vector<OffloadCandidate> candidates;
  for (const Tree& rung : ladder(config)) {
    const size_t count = std::min(splits.size(), kMostSizes);
    for (size_t i = 0; i < count; ++i) {
      const BatchSplit& split = splits[count < 2 ? 0 : i * (splits.size() - 1) / (count - 1)];
      candidates.push_back({rung, split, false});
      if (chooses_recompute(config, options)) candidates.push_back({rung, split, true});
    }
    if (rung.members.size() == passes::kNumOffloadClasses && !splits.empty())
      candidates.push_back({rung, splits.back(), chooses_recompute(config, options), true});
  }
  return candidates;
}

Result<Planned> choose_offload(Planned without, const std::vector<OffloadCandidate>& candidates,
                               const PlanOffload& plan) {
  if (without.report.fits) return without;
  Planned best = std::move(without);
  for (const OffloadCandidate& candidate : candidates) {
    auto planned = plan(candidate);
    if (!planned || !planner::is_better(planned->report, best.report)) continue;
    best = std::move(*planned);
    if (best.report.fits) break;
  }
  return best;
}

}  // namespace plimsoll::train
