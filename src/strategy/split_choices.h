// The splits of a batch that a search looks at.
#pragma once

#include <vector>

#include "strategy/plan_strategy.h"

namespace plimsoll::strategy {

/// Divisors of the global batch, the largest first; the one that is given where one is. With `whole` the
/// whole batch at once alone.
std::vector<settings::BatchSplit> candidate_splits(const settings::TrainingSettings& training, bool whole);

/// Whether the run trains and takes statistics of its micro-batches, so that no search may choose their size.
bool keeps_batch_whole(const RunScope& scope);

/// Of a list of splits a dozen at most, the first and the last among them: as many between them as are apart
/// by the same factor.
std::vector<settings::BatchSplit> spread_splits(const std::vector<settings::BatchSplit>& splits);

/// What a split takes where nothing is given up for memory.
struct SplitTime {
  settings::BatchSplit split;
  double seconds = 0;
};
/// Whether each is worth more than a look. A larger part needs more memory, so that it is left out where one
/// of the smaller ones that are not left out takes as long, or longer by no more than `margin`, a share of
/// its time. The whole batch at once stands apart: it has no accumulators.
std::vector<bool> worth_planning(const std::vector<SplitTime>& splits, double margin);

}  // namespace plimsoll::strategy
