#include "train/known_ways.h"

#include <algorithm>

namespace plimsoll::train {

const Planned* KnownWays::find(const Way& way) const {
  const auto found = std::ranges::find(ways_, way, &Planned::way);
  return found == ways_.end() ? nullptr : &*found;
}

void KnownWays::add(const Planned& planned) {
  ways_.push_back({planned.way, {}, planned.report, planned.facts});
}

const planner::PlanReport* KnownWays::find_sketch(const Way& way) const {
  const auto found = std::ranges::find(sketches_, way, &std::pair<Way, planner::PlanReport>::first);
  return found == sketches_.end() ? nullptr : &found->second;
}

void KnownWays::add_sketch(const Way& way, const planner::PlanReport& report) {
  sketches_.emplace_back(way, report);
}

}  // namespace plimsoll::train
