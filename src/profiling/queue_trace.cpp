#include "profiling/queue_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/process.h"
#include "io/tree.h"
#include "ir/op_def.h"

namespace plimsoll::profiling {
namespace {

constexpr size_t kCompute = static_cast<size_t>(ir::Queue::kCompute);

/// In order, apart from each other.
using Intervals = std::vector<std::pair<double, double>>;

Intervals joined(Intervals intervals) {
  std::ranges::sort(intervals);
  Intervals joined;
  for (const auto& [begin, end] : intervals)
    if (joined.empty() || begin > joined.back().second)
      joined.emplace_back(begin, end);
    else
      joined.back().second = std::max(joined.back().second, end);
  return joined;
}

double length(const Intervals& intervals) {
  double sum = 0;
  for (const auto& [begin, end] : intervals) sum += end - begin;
  return sum;
}

/// Seconds that lie in both.
double common(const Intervals& a, const Intervals& b) {
  double sum = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    sum += std::max(0.0, std::min(a[i].second, b[j].second) - std::max(a[i].first, b[j].first));
    a[i].second < b[j].second ? ++i : ++j;
  }
  return sum;
}

Status wait_for_all(runtime::Device& device) {
  for (size_t q = 0; q < ir::kNumAllQueues; ++q) PLIMSOLL_TRY(device.synchronize(static_cast<ir::Queue>(q)));
  return Ok{};
}

}  // namespace

Result<QueueLog> log_queues(training::Trainer& trainer, runtime::Device& device,
                            const ProfileSchedule& schedule) {
  if (!device.has_queue_log())
    return Error{ErrorCode::kInvalidArgument, "this device does not record the times of its queues",
                 "runtime.device", "use runtime.device=discrete, or memory.offload to disk"};
  QueueLog log;
  double begin = 0;
  const auto end_log = [&]() -> Status {
    PLIMSOLL_TRY(wait_for_all(device));
    log.seconds += now_seconds() - begin;
    const std::vector<runtime::QueueWork> work = device.take_queue_log();
    log.work.insert(log.work.end(), work.begin(), work.end());
    return trainer.session().log_queues(false);
  };
  bool logs = false;
  for (int64_t step = 0; step < schedule.num_steps(); ++step) {
    const bool active = schedule.is_active(step);
    if (active && !logs) {
      PLIMSOLL_TRY(trainer.session().log_queues(true));
      begin = now_seconds();
      if (log.steps == 0) log.start = begin;
    } else if (!active && logs) {
      PLIMSOLL_TRY(end_log());
    }
    logs = active;
    PLIMSOLL_TRY(trainer.step());
    log.steps += active ? 1 : 0;
  }
  if (logs) PLIMSOLL_TRY(end_log());
  return log;
}

QueueShares queue_shares(const QueueLog& log) {
  std::array<Intervals, ir::kNumAllQueues> busy;
  QueueShares shares;
  const double steps = static_cast<double>(std::max<int64_t>(1, log.steps));
  for (const runtime::QueueWork& work : log.work) {
    const auto queue = static_cast<size_t>(work.queue);
    busy[queue].emplace_back(work.start, work.start + work.seconds);
    if (work.is_copy) shares.queues[queue].bytes += work.bytes;
  }
  Intervals copies;
  for (Intervals& intervals : busy) intervals = joined(std::move(intervals));
  for (size_t q = 0; q < ir::kNumAllQueues; ++q) {
    shares.queues[q].busy_seconds = length(busy[q]) / steps;
    shares.queues[q].beside_kernels_seconds = common(busy[q], busy[kCompute]) / steps;
    shares.queues[q].bytes /= std::max<int64_t>(1, log.steps);
    if (q != kCompute) copies.insert(copies.end(), busy[q].begin(), busy[q].end());
  }
  copies = joined(std::move(copies));
  shares.step_seconds = log.seconds / steps;
  shares.waiting_seconds = (length(copies) - common(copies, busy[kCompute])) / steps;
  return shares;
}

std::string queue_trace(const QueueLog& log) {
  std::string text =
      "{\"schemaVersion\": 1, \"deviceProperties\": [], \"displayTimeUnit\": \"ms\", "
      "\"baseTimeNanoseconds\": 0,\n\"traceEvents\": [\n{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": "
      "1, \"tid\": 0, \"args\": {\"name\": \"plimsoll\"}}";
  const auto out = std::back_inserter(text);
  for (size_t q = 0; q < ir::kNumAllQueues; ++q)
    fmt::format_to(out,
                   ",\n{{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": 1, \"tid\": {}, \"args\": "
                   "{{\"name\": \"{}\"}}}}",
                   q + 1, ir::name(static_cast<ir::Queue>(q)));
  for (const runtime::QueueWork& work : log.work) {
    const std::string_view name = work.op != nullptr ? work.op->def->name : work.is_copy ? "copy" : "fill";
    fmt::format_to(out,
                   ",\n{{\"ph\": \"X\", \"cat\": \"{}\", \"name\": \"{}\", \"pid\": 1, \"tid\": {}, \"ts\": "
                   "{:.3f}, \"dur\": {:.3f}, \"args\": {{\"layer\": {}, \"bytes\": {}}}}}",
                   work.is_copy ? "gpu_memcpy" : "kernel", name, static_cast<size_t>(work.queue) + 1,
                   1e6 * (work.start - log.start), 1e6 * work.seconds,
                   io::to_json(io::Tree::of(work.op != nullptr ? work.op->layer : std::string())),
                   work.bytes);
  }
  return text + "\n]}\n";
}

}  // namespace plimsoll::profiling
