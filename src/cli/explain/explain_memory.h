// `plan --explain memory`: what is alive while the ops of the largest program run, the peak and its tensors,
// the phases, the guides' formula beside the plan; `--svg`: the same as a picture.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "planner/report/memory_timeline.h"
#include "strategy/prepare.h"

namespace plimsoll::cli {

/// What the plan's peak has beside the device's states and arena, by name; nothing where the device's memory
/// is no part of the process.
std::vector<std::pair<std::string, int64_t>> bytes_beside(const planner::PlanReport& report);

class MemoryExplanation {
 public:
  explicit MemoryExplanation(const strategy::Prepared& prepared);

  /// Errors: kIo.
  [[nodiscard]] Status write_svg(const std::string& path) const;
  /// For people on stdout, or one object {"event":"memory_timeline", …}.
  void print(bool json) const;
  /// What `print` tells people, in lines of at most `columns`.
  [[nodiscard]] std::string text(int columns) const;

 private:
  std::string model_;
  planner::MemoryTimeline timeline_;
  planner::MemoryFormula formula_;
};

}  // namespace plimsoll::cli
