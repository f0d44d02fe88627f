#include "train/sketches.h"

#include <algorithm>
#include <utility>

namespace plimsoll::train {

Result<planner::PlanReport> Sketches::operator()(const Way& way) {
  if (const Planned* known = options_.known->find_sketch(way)) {
    planner::PlanReport report = known->report;
    hold_against_budgets(config_, prepared_, way, target_, options_, report);
    return report;
  }
  PLIMSOLL_ASSIGN(Planned sketched, sketch_way(config_, prepared_, way, target_, options_, &scheduled(way)));
  options_.known->add_sketch(sketched);
  return std::move(sketched.report);
}

planner::ScheduledPrograms& Sketches::scheduled(const Way& way) {
  constexpr size_t kMost = 3;  // some 20 MiB each of a model of 80 layers
  Way plain = way;
  plain.offload = {};
  const bool streams = way.offload.streams_updates();
  const auto found = std::ranges::find_if(
      scheduled_, [&](const Scheduled& s) { return s.way == plain && s.streams_updates == streams; });
  if (found != scheduled_.end()) {
    std::rotate(found, found + 1, scheduled_.end());
  } else {
    if (scheduled_.size() == kMost) scheduled_.erase(scheduled_.begin());
    scheduled_.push_back({std::move(plain), streams, std::make_unique<planner::ScheduledPrograms>()});
  }
  return *scheduled_.back().programs;
}

}  // namespace plimsoll::train
