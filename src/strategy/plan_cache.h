// A cache of planned strategies, so that a search plans none twice.
#pragma once

#include <vector>

#include "strategy/plan_strategy.h"

namespace plimsoll::strategy {

/// Reports and facts of the ways of one run, whatever its budgets; programs are not kept. All that plans with
/// one of these differs in memory.budget, memory.device_budget and memory.host_budget alone.
class PlanCache {
 public:
  /// Without programs; its report is held against the budgets that there were. Null where it is not known.
  [[nodiscard]] const PlannedStep* find(const Strategy& strategy) const;
  void add(const PlannedStep& planned);
  /// The same of ways that were sketched; facts where whoever sketched asked for them, or `with_facts` those
  /// alone that have them.
  [[nodiscard]] const PlannedStep* find_estimate(const Strategy& strategy, bool with_facts = false) const;
  void add_estimate(const PlannedStep& estimated);
  /// What their programs have in common.
  planner::ProgramCache& programs() { return programs_; }

 private:
  std::vector<PlannedStep> ways_, estimates_;
  planner::ProgramCache programs_;
};

}  // namespace plimsoll::strategy
