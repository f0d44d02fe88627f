// Fixed recompute policies as choices of the recompute search.
#pragma once

#include <vector>

#include "planner/recompute/recompute_search.h"

namespace plimsoll::planner {

struct FixedChoice {
  RecomputeChoice choice;
  int64_t saved_bytes = 0;
};

/// The same option of every block, every n-th block, k runs of blocks; the least seconds first.
std::vector<FixedChoice> fixed_choices(const RecomputeChain& chain);

}  // namespace plimsoll::planner
