// Compares measured op times of a step with the profile's estimates: kept by runs, told to people, and fed
// back into the profile.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "io/tree.h"
#include "planner/cost/machine_profile.h"

namespace plimsoll::planner {

/// Of all ops of a step of one kind and type (op_work.h).
struct OpSeconds {
  std::string kind;
  ProductType type = ProductType::kF32;
  int64_t calls = 0;
  double seconds = 0, estimated = 0;
};

struct StepTimes {
  std::string machine;  ///< the profile's name
  std::string profile;  ///< profile_identity of what the estimates are by
  int64_t threads = 0;
  double seconds = 0, estimated = 0;  ///< of a step
  std::vector<OpSeconds> ops = {};

  /// Adds an op's run to those of its kind.
  void add(std::string_view kind, ProductType type, double took, double expected);
};

/// 16 hexadecimal digits, other ones for each other profile.
std::string profile_identity(const MachineProfile& profile);

/// {"event": "estimate", …}, as the run's log has it.
io::Tree step_times_event(const StepTimes& times);
/// Strict, of what may come from anywhere. Errors: kBadData.
Result<StepTimes> parse_step_times(const io::Tree& event);

/// Beyond which a step is told of: a quarter more or less than estimated.
inline constexpr double kNoticedDifference = 0.25;
/// What to say of a step that took that much more or less, with the kind of op that makes up most of the
/// difference; empty where the estimate held.
std::string difference_text(const StepTimes& times);

/// The profile with each kind's seconds as runs found them. Errors: kInvalidArgument for runs of another
/// machine or estimated by another profile.
Result<MachineProfile> with_measured(MachineProfile profile, std::span<const StepTimes> runs);

}  // namespace plimsoll::planner
