// Ways to run a step that were planned already, so that a search plans none twice.
#pragma once

#include <vector>

#include "train/plan_way.h"

namespace plimsoll::train {

/// Reports and facts of the ways of one run, whatever its budgets; programs are not kept. All that plans with
/// one of these differs in memory.budget, memory.device_budget and memory.host_budget alone.
class KnownWays {
 public:
  /// Without programs; its report is held against the budgets that there were. Null where it is not known.
  [[nodiscard]] const Planned* find(const Way& way) const;
  void add(const Planned& planned);
  /// The same of ways that were sketched; facts where whoever sketched asked for them, or `with_facts` those
  /// alone that have them.
  [[nodiscard]] const Planned* find_sketch(const Way& way, bool with_facts = false) const;
  void add_sketch(const Planned& sketched);
  /// What their programs have in common.
  planner::KnownPrograms& programs() { return programs_; }

 private:
  std::vector<Planned> ways_, sketches_;
  planner::KnownPrograms programs_;
};

}  // namespace plimsoll::train
