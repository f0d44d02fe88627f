// Reorders a program so that less is alive at once.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/result.h"
#include "ir/graph.h"
#include "ir/op_def.h"

namespace plimsoll::passes {

struct ScheduleOptions {
  std::span<const ir::ValueId> keep = {};
  bool in_place = true;  ///< whether results will take operands' places
  /// Ops of the update stay among backward's, where optimizer_in_backward has put them.
  bool updates_stay = false;
  /// Scratch of an op's kernel; empty: none.
  std::function<int64_t(const ir::OpTypes&)> workspace_bytes = {};
};
struct ScheduleReport {
  int64_t peak_bytes_before = 0;  ///< largest live sum
  int64_t peak_bytes_after = 0;
};

/// Ops whose results are larger than what they free wait until the first use; ops that free more than they
/// make run as soon as their operands are there. An order is taken only where its largest live sum is lower;
/// otherwise the program's own stays. Reads, writes and consumption of one storage keep their order.
/// Deterministic; near-linear.
Result<ScheduleReport> schedule(ir::Graph& graph, const ScheduleOptions& options = {});

}  // namespace plimsoll::passes
