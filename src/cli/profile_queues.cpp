#include "cli/profile_queues.h"

#include <fmt/format.h>

#include <iterator>
#include <vector>

#include "base/terminal.h"
#include "io/file.h"
#include "io/tree.h"
#include "train/queue_trace.h"

namespace plimsoll::cli {
namespace {

double part(double of, double whole) { return whole > 0 ? of / whole : 0; }

Tree queues_event(const train::QueueShares& shares, int64_t steps) {
  std::vector<Tree> queues;
  for (size_t q = 0; q < ir::kNumQueues; ++q) {
    const train::QueueShare& share = shares.queues[q];
    queues.push_back(Tree::map({{"queue", Tree::of(std::string(ir::name(static_cast<ir::Queue>(q))))},
                                {"seconds", Tree::of(share.busy_seconds)},
                                {"beside_kernels_seconds", Tree::of(share.beside_kernels_seconds)},
                                {"bytes", Tree::of(share.bytes)}}));
  }
  return Tree::map({{"event", Tree::of(std::string("queues"))},
                    {"steps", Tree::of(steps)},
                    {"step_seconds", Tree::of(shares.step_seconds)},
                    {"waiting_seconds", Tree::of(shares.waiting_seconds)},
                    {"queues", Tree::list(queues)}});
}

std::string queues_text(const train::QueueShares& shares) {
  std::string text =
      fmt::format("a step takes {:.1f} ms\n  queue          busy           beside kernels      moved\n",
                  1e3 * shares.step_seconds);
  for (size_t q = 0; q < ir::kNumQueues; ++q) {
    const train::QueueShare& share = shares.queues[q];
    if (static_cast<ir::Queue>(q) == ir::Queue::kHost && share.busy_seconds == 0) continue;
    fmt::format_to(std::back_inserter(text), "  {:<9}{:>10.1f} ms{:>7.1f}%",
                   ir::name(static_cast<ir::Queue>(q)), 1e3 * share.busy_seconds,
                   1e2 * part(share.busy_seconds, shares.step_seconds));
    if (static_cast<ir::Queue>(q) != ir::Queue::kCompute)
      fmt::format_to(std::back_inserter(text), "{:>14.1f}%{:>12.1f} MiB",
                     1e2 * part(share.beside_kernels_seconds, share.busy_seconds),
                     static_cast<double>(share.bytes) / (1 << 20));
    text += "\n";
  }
  fmt::format_to(std::back_inserter(text),
                 "the device computes nothing beside them for {:.1f} ms, {:.1f}% of the step\n",
                 1e3 * shares.waiting_seconds, 1e2 * part(shares.waiting_seconds, shares.step_seconds));
  return text;
}

}  // namespace

Status profile_queues(OpenRun& run, const train::ProfileSchedule& schedule, const std::string& folder,
                      bool json) {
  PLIMSOLL_ASSIGN(const train::QueueLog log, train::log_queues(*run.trainer, *run.device, schedule));
  PLIMSOLL_TRY(write_file_atomically(folder + "/queues.json", train::queue_trace(log)));
  const train::QueueShares shares = train::queue_shares(log);
  if (json)
    fmt::print("{}\n", to_json(queues_event(shares, log.steps)));
  else
    print_text(queues_text(shares));
  return Ok{};
}

}  // namespace plimsoll::cli
