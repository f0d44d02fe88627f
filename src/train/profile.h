// Steps of a run taken apart: when each op ran and how long, and what follows from that. Ops run one by one
// with the clock, so nothing is hidden behind anything; a run that is not profiled pays nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/tree.h"
#include "train/trainer.h"

namespace plimsoll::train {

/// PyTorch's schedule: skip_first, then so often wait, warmup, active. Steps of `active` are kept.
struct ProfileSchedule {
  int64_t wait = 1, warmup = 1, active = 3, skip_first = 0, repeat = 1;
  [[nodiscard]] int64_t num_steps() const { return skip_first + repeat * (wait + warmup + active); }
  /// Of steps counted from 0.
  [[nodiscard]] bool is_active(int64_t step) const;
};

/// What is the same each time an op runs.
struct OpFacts {
  std::string op = {}, layer = {};
  bool copies = false, updates = false, recomputed = false;
  double flops = 0, bytes = 0;
  std::string dims = {}, types = {};  ///< of the inputs, as JSON lists
};
struct OpRun {
  size_t op = 0;                  ///< of facts
  double start = 0, seconds = 0;  ///< from the profile's start
};
struct ProfiledStep {
  double start = 0, seconds = 0, data_wait_seconds = 0;
  int64_t tokens = 0;  ///< that are not padding
  std::vector<OpRun> ops = {};
  double taken_seconds = 0;  ///< that the thread of the steps could have run and another had its CPU
  int64_t read_bytes = 0;    ///< from storage, by the process
};
struct Profile {
  std::vector<OpFacts> facts = {};
  std::vector<ProfiledStep> steps = {};  ///< of the active ones
  int64_t padded_tokens = 0;             ///< of a step, as computed
};

/// Runs the schedule's steps. Errors: as Trainer::step.
Result<Profile> profile_steps(Trainer& trainer, const ProfileSchedule& schedule);

/// ops.json: by op and layer, means a step.
Tree profile_ops(const Profile& profile);
/// trace.json, in Kineto's form of Chrome's.
std::string profile_trace(const Profile& profile);

/// One place that a step's time goes, in seconds a step.
struct Finding {
  std::string what;
  double seconds = 0, share = 0;
  std::string hint;  ///< the setting that would help; empty: none does
};
/// Where a step's time goes, all of it, the largest first. Of the measured parts alone.
std::vector<Finding> verdict_of(const Profile& profile);

}  // namespace plimsoll::train
