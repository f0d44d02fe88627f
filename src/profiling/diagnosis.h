// Diagnoses the time of a step and suggests settings: what is lost before the work itself, and each with the
// setting that would win it back.
#pragma once

#include <string>
#include <vector>

#include "profiling/profile.h"

namespace plimsoll::profiling {

/// A loss could be won back, all of it or most; the work at its rate could not. Losses of less than
/// kSmallLoss of a step do not decide anything.
enum class FindingKind : uint8_t { kLoss, kWork, kSmallLoss };
inline constexpr double kSmallLoss = 0.02;
/// "loss", "work", "small loss".
std::string_view name(FindingKind kind);

/// One place that a step's time goes, in seconds a step.
struct Finding {
  std::string what;
  FindingKind kind = FindingKind::kLoss;
  double seconds = 0, share = 0;
  std::string hint;  ///< what would help; of work what it is
};
/// Where a step's time goes, all of it: losses, then the work, then small losses, each the largest first. Of
/// the measured parts alone.
std::vector<Finding> diagnose(const Profile& profile);

}  // namespace plimsoll::profiling
