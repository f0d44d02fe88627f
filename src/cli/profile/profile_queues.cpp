#include "cli/profile/profile_queues.h"

#include <fmt/format.h>

#include <iterator>
#include <vector>

#include "cli/terminal.h"
#include "io/file.h"
#include "io/tree.h"
#include "profiling/queue_trace.h"

namespace plimsoll::cli {
namespace {

double part(double of, double whole) { return whole > 0 ? of / whole : 0; }

io::Tree queues_event(const profiling::QueueShares& shares, int64_t steps) {
  std::vector<io::Tree> queues;
  for (size_t q = 0; q < ir::kNumAllQueues; ++q) {
    const profiling::QueueShare& share = shares.queues[q];
    queues.push_back(io::Tree::map({{"queue", io::Tree::of(std::string(ir::name(static_cast<ir::Queue>(q))))},
                                    {"seconds", io::Tree::of(share.busy_seconds)},
                                    {"beside_kernels_seconds", io::Tree::of(share.beside_kernels_seconds)},
                                    {"bytes", io::Tree::of(share.bytes)}}));
  }
  return io::Tree::map({{"event", io::Tree::of(std::string("queues"))},
                        {"steps", io::Tree::of(steps)},
                        {"step_seconds", io::Tree::of(shares.step_seconds)},
                        {"waiting_seconds", io::Tree::of(shares.waiting_seconds)},
                        {"queues", io::Tree::list(queues)}});
}

std::string queues_text(const profiling::QueueShares& shares) {
  std::string text =
      fmt::format("a step takes {:.1f} ms\n  queue          busy           during kernels      moved\n",
                  1e3 * shares.step_seconds);
  for (size_t q = 0; q < ir::kNumAllQueues; ++q) {
    const profiling::QueueShare& share = shares.queues[q];
    const auto queue = static_cast<ir::Queue>(q);
    if ((queue == ir::Queue::kHost || queue == ir::kNetworkQueue) && share.busy_seconds == 0) continue;
    fmt::format_to(std::back_inserter(text), "  {:<9}{:>10.1f} ms{:>7.1f}%", ir::name(queue),
                   1e3 * share.busy_seconds, 1e2 * part(share.busy_seconds, shares.step_seconds));
    if (queue != ir::Queue::kCompute)
      fmt::format_to(std::back_inserter(text), "{:>14.1f}%{:>12.1f} MiB",
                     1e2 * part(share.beside_kernels_seconds, share.busy_seconds),
                     static_cast<double>(share.bytes) / (1 << 20));
    text += "\n";
  }
  fmt::format_to(std::back_inserter(text),
                 "no kernel runs during the copies for {:.1f} ms, {:.1f}% of the step\n",
                 1e3 * shares.waiting_seconds, 1e2 * part(shares.waiting_seconds, shares.step_seconds));
  return text;
}

}  // namespace

Status profile_queues(engine::OpenRun& run, const profiling::ProfileSchedule& schedule,
                      const std::string& folder, bool json) {
  PLIMSOLL_ASSIGN(const profiling::QueueLog log, profiling::log_queues(*run.trainer, *run.device, schedule));
  PLIMSOLL_TRY(io::write_file_atomically(folder + "/queues.json", profiling::queue_trace(log)));
  const profiling::QueueShares shares = profiling::queue_shares(log);
  if (json)
    fmt::print("{}\n", io::to_json(queues_event(shares, log.steps)));
  else
    print_text(queues_text(shares));
  return Ok{};
}

}  // namespace plimsoll::cli
