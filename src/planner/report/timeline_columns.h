// A timeline cut into columns, for pictures: of the ops that share a column the one with the most is drawn,
// so that no picture hides the peak.
#pragma once

#include <string>
#include <vector>

#include "planner/report/memory_timeline.h"

namespace plimsoll::planner {

/// Index of the point that each of `columns` columns shows. Fewer points than columns: each has several.
std::vector<size_t> timeline_columns(const MemoryTimeline& timeline, size_t columns);

/// Neighbouring columns of one phase.
struct PhaseRun {
  StepPhase phase = StepPhase::kForward;
  size_t first = 0, last = 0;  ///< columns, inclusive
};
/// In order. Ops of the update between those of backward make no run of their own.
std::vector<PhaseRun> phase_runs(const MemoryTimeline& timeline, const std::vector<size_t>& columns);

/// Where an axis from 0 to `most` is marked, at least at 0, in whole powers of ten of a binary unit times 1,
/// 2 or 5.
struct BytesAxis {
  int64_t step = 1;
  std::vector<std::string> labels;  ///< of 0, step, 2 step, …: "0", "500 MiB"
};
BytesAxis bytes_axis(int64_t most, int64_t ticks);

/// "head_loss in lm_head".
std::string place_of(const TimelinePoint& point);

}  // namespace plimsoll::planner
