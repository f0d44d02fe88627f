// Shows how the memory of a run grows with each dimension: each made larger and planned.
#pragma once

#include <string>
#include <vector>

#include "analysis/techniques.h"
#include "io/tree.h"

namespace plimsoll::analysis {

struct DimensionRow {
  std::string name;
  std::string dimension;            ///< that grows: "hidden size"
  strategy::SettingTexts settings;  ///< over the run's; planned by themselves they give this peak
  int64_t peak_bytes = 0;           ///< as main_peak_bytes
  int64_t added_bytes = 0;          ///< over the run's, exact
  double grows = 0;                 ///< by which share the dimension grows: 1 is twice as much
};

/// One more sequence at once, twice the length, one more block, the next wider hidden size (a head more, the
/// MLP in proportion), 1,024 more words; what the model's configuration does not allow is left out. The split
/// and what is computed again stay those of the run's plan `base`, so that what is added is the dimension's
/// alone.
std::vector<DimensionRow> plan_dimensions(const strategy::Variants& variants, const strategy::Prepared& base);

/// {"event": "dimensions", "rows": […]}
io::Tree dimensions_event(const std::vector<DimensionRow>& rows);
/// The table for people, and which dimension dominates: the one that adds most for the share that it grows
/// by.
std::string dimensions_table(const std::vector<DimensionRow>& rows, const planner::PlanReport& base);

}  // namespace plimsoll::analysis
