#include "strategy/plan_cache.h"

#include <algorithm>

namespace plimsoll::strategy {

namespace {

const PlannedStep* find_in(const std::vector<PlannedStep>& list, const Strategy& strategy, bool with_facts) {
  const auto found = std::ranges::find_if(list, [&](const PlannedStep& p) {
    return p.strategy == strategy && (!with_facts || p.facts != nullptr);
  });
  return found == list.end() ? nullptr : &*found;
}

/// Without its programs.
PlannedStep light(const PlannedStep& planned) {
  return {planned.strategy, {}, planned.report, planned.facts};
}

}  // namespace

const PlannedStep* PlanCache::find(const Strategy& strategy) const {
  return find_in(plans_, strategy, /*with_facts=*/false);
}
void PlanCache::add(const PlannedStep& planned) { plans_.push_back(light(planned)); }
const PlannedStep* PlanCache::find_estimate(const Strategy& strategy, bool with_facts) const {
  return find_in(estimates_, strategy, with_facts);
}
void PlanCache::add_estimate(const PlannedStep& estimated) { estimates_.push_back(light(estimated)); }

}  // namespace plimsoll::strategy
