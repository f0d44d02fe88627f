// Strategies of one run that were planned already, so that a search plans none twice.
#pragma once

#include <vector>

#include "strategy/plan_strategy.h"

namespace plimsoll::strategy {

/// A value that whoever asks for plans owns and passes on. It holds reports and facts of a run's strategies,
/// whatever the budgets, and parts of programs; no whole programs. Runs that share one differ in
/// memory.budget, memory.device_budget and memory.host_budget alone.
class PlanCache {
 public:
  /// Without programs; its report was compared with the budgets of its time. Null where there is none.
  [[nodiscard]] const PlannedStep* find(const Strategy& strategy) const;
  void add(const PlannedStep& planned);
  /// The same of estimates. Some have facts; `with_facts`: only those.
  [[nodiscard]] const PlannedStep* find_estimate(const Strategy& strategy, bool with_facts = false) const;
  void add_estimate(const PlannedStep& estimated);
  /// Parts of programs that the strategies share.
  planner::ProgramCache& programs() { return programs_; }

 private:
  std::vector<PlannedStep> plans_, estimates_;
  planner::ProgramCache programs_;
};

}  // namespace plimsoll::strategy
