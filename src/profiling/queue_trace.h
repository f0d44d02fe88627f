// Analyses the overlap of a device's queues: how much of its copies kernels hide, and a trace to look at.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "ir/network_queue.h"
#include "profiling/profile.h"
#include "runtime/queue_work.h"

namespace plimsoll::profiling {

struct QueueLog {
  std::vector<runtime::QueueWork> work = {};  ///< of the active steps, queue by queue
  int64_t steps = 0;
  double start = 0;    ///< of the first of them, by now_seconds
  double seconds = 0;  ///< of all of them together
};

/// Runs the schedule's steps as training does and takes down the active ones; between them nothing waits.
/// Errors: as Trainer::step; kInvalidArgument of a device that does not tell what its queues do.
Result<QueueLog> log_queues(training::Trainer& trainer, runtime::Device& device,
                            const ProfileSchedule& schedule);

/// A queue in seconds and bytes a step.
struct QueueShare {
  double busy_seconds = 0;
  double beside_kernels_seconds = 0;  ///< of that; of kCompute's kernels all
  int64_t bytes = 0;                  ///< that its copies move
};
struct QueueShares {
  std::array<QueueShare, ir::kNumAllQueues> queues = {};
  double step_seconds = 0;
  double waiting_seconds = 0;  ///< a copy is under way and no kernel
};
QueueShares queue_shares(const QueueLog& log);

/// queues.json, in Kineto's form of Chrome's: a lane a queue.
std::string queue_trace(const QueueLog& log);

}  // namespace plimsoll::profiling
