// Steps of a run taken apart: when each op ran and how long, what the host did beside, and what follows from
// that. Ops run one by one with the clock, so nothing is hidden behind anything; a run that is not profiled
// pays nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/span_log.h"
#include "images/load_times.h"
#include "planner/report/memory_timeline.h"
#include "training/trainer.h"

namespace plimsoll::profiling {

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
  size_t program = 0;
  int32_t position = 0;  ///< in the order of the program
  bool is_product = false;
  bool copies = false;
  bool on_host = false;  ///< a kernel that the host runs beside the device
  bool updates = false, recomputed = false;
  double flops = 0, bytes = 0;
  int64_t rows = 0;                   ///< of the first input: tokens, mostly
  std::string dims = {}, types = {};  ///< of the inputs, as JSON lists
  double estimated_seconds = 0;       ///< by the machine's profile; 0: nothing is known of it
  double peak_seconds = 0;            ///< of its operations at the machine's best rate for their type
  planner::ClassBytes live = {};      ///< on the device while it runs
};
struct OpRun {
  size_t op = 0;                  ///< of facts
  double start = 0, seconds = 0;  ///< from the profile's start
  /// Of the threads that it computed on: the longest and the mean. 0: not known.
  double busiest_seconds = 0, mean_seconds = 0;
  int64_t measured_bytes = 0;  ///< as runtime::TimedOp
};
struct ProfiledStep {
  double start = 0, seconds = 0, data_wait_seconds = 0;
  int64_t units = 0;  ///< of the task, that are not padding
  std::vector<OpRun> ops = {};
  std::vector<Span> spans = {};  ///< of the host, from the profile's start; in the order of their ends
  double taken_seconds = 0;      ///< that a computing thread could have run and another had its CPU
  double loading_seconds = 0, saving_seconds = 0;  ///< of CPUs, that the loaders and the saving had
  double idle_cpus = 0;                            ///< of the machine, in the mean
  int64_t read_bytes = 0;                          ///< from storage, by the process
  images::LoadTimes images = {};                   ///< of the threads that load them, where there are any
};
struct Profile {
  std::vector<OpFacts> facts = {};
  std::vector<ProfiledStep> steps = {};  ///< of the active ones
  int64_t padded_units = 0;              ///< of a step, as computed
  planner::ClassBytes live = {};         ///< on the device between programs
  std::string rates = "uncalibrated";    ///< of the estimates, as choices.rates
  bool on_device = false;                ///< ops are kernels of a device with memory of its own
  int num_threads = 0, num_cpus = 0;  ///< that ops compute on, that the process may have; 0: a card computes
  /// Of products: the machine's rate in bf16 over that in fp32, 1 where the run computes in bf16 already.
  double bf16_gain = 1;
};

struct ProfileOptions {
  ProfileSchedule schedule = {};
  bool memory = false;  ///< what is resident behind each op, which costs some 20 us an op
  bool saves = false;   ///< checkpoints, as often as the run does
};
/// Runs the schedule's steps. Errors: as Trainer::step, and those of saving.
Result<Profile> profile_steps(training::Trainer& trainer, const ProfileOptions& options);

/// The timeline of the program with the largest arena of those that ran, with what was measured behind its
/// ops: the most of all steps. `beside_bytes` as planner::MeasuredBytes.
planner::MemoryTimeline measured_timeline(const Profile& profile, const passes::SessionPlan& session,
                                          int64_t beside_bytes);

/// Where the steps' wall time is in the trace, in seconds a step: ops, copies, then what the host did by
/// name, without what ops within it took; "in no event" comes last.
std::vector<std::pair<std::string, double>> parts_of_steps(const Profile& profile);

/// What of a step's time was put to use, as shares.
struct Efficiency {
  double utilisation = 0;  ///< threads computing; where they are not known, ops running
  double necessary = 0;    ///< ops that are neither recompute nor copies, on tokens that are no padding
  double mfu = 0;          ///< the operations of the latter at the machine's best rate
};
Efficiency efficiency_of(const Profile& profile);

}  // namespace plimsoll::profiling
