#include "measuring/copy_rates.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/process.h"
#include "devices/devices.h"
#include "io/atomic_directory.h"
#include "measuring/cached_reads.h"

namespace plimsoll::measuring {
namespace {

using ir::Queue;
using runtime::QueueWork;

/// The first writes of a file's blocks take longer: none is measured on blocks that never held anything.
constexpr double kMostFillSeconds = 3;
constexpr int64_t kMemoryChunk = int64_t{16} << 20, kDiskChunk = int64_t{4} << 20;
constexpr int64_t kLeastDiskChunks = 4;
constexpr size_t kLeastWorks = 3, kMostWorks = 4096;

struct Seen {
  double bytes_per_second = 0;  ///< of a copy queue
  double kernel_seconds = 0;    ///< the mean of a kernel
};

/// When each queue that had work was at it; all of the time where they were never all at it at once.
std::pair<double, double> common_time(const std::vector<QueueWork>& log) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  double begin = 0, end = kNever;
  for (size_t q = 0; q < ir::kNumQueues; ++q) {
    double first = kNever, last = 0;
    for (const QueueWork& work : log)
      if (static_cast<size_t>(work.queue) == q) {
        first = std::min(first, work.start);
        last = std::max(last, work.start + work.seconds);
      }
    if (last > 0) {
      begin = std::max(begin, first);
      end = std::min(end, last);
    }
  }
  return begin < end ? std::pair(begin, end) : std::pair(0.0, kNever);
}

/// By queue: what it did in that time, of work that reaches beyond it as much as lies within.
std::array<Seen, ir::kNumQueues> seen_in(const std::vector<QueueWork>& log) {
  const auto [begin, end] = common_time(log);
  std::array<Seen, ir::kNumQueues> seen = {};
  for (size_t q = 0; q < ir::kNumQueues; ++q) {
    double bytes = 0, seconds = 0, count = 0;
    for (const QueueWork& work : log) {
      const double within = std::min(end, work.start + work.seconds) - std::max(begin, work.start);
      if (static_cast<size_t>(work.queue) != q || within <= 0) continue;
      const double part = within / work.seconds;
      bytes += part * static_cast<double>(work.bytes);
      seconds += within;
      count += part;
    }
    if (seconds > 0) seen[q] = {bytes / seconds, seconds / count};
  }
  return seen;
}

/// A device with queues, memory of its own on one side, and on the other the host's or the disk's.
class CopyBench {
 public:
  static Result<std::unique_ptr<CopyBench>> create(runtime::Device& device, ir::MemorySpace away,
                                                   int64_t bytes, int64_t chunk, double seconds) {
    std::unique_ptr<CopyBench> bench(new CopyBench(device, chunk, seconds));
    PLIMSOLL_ASSIGN(bench->away_, bench->device_->allocate(away, Bytes(bytes)));
    PLIMSOLL_ASSIGN(bench->here_, bench->device_->allocate(ir::MemorySpace::kDevice, Bytes(2 * chunk)));
    const std::vector<SampleGroup> samples = first_samples();
    bench->kernel_ = std::make_unique<OpTimer>(*bench->device_, samples.front().samples.front());
    bench->kernel_alone_ = bench->kernel_->typical_seconds(seconds / 4);
    PLIMSOLL_TRY(Status(bench->kernel_->status()));
    return bench;
  }

  /// Writes all of it once, as far as time allows.
  Status fill() {
    const double start = now_seconds();
    int64_t written = 0;
    for (; written < num_chunks() && now_seconds() - start < kMostFillSeconds; ++written) {
      PLIMSOLL_TRY(copy(Queue::kCopyOut, written));
      PLIMSOLL_TRY(device_->synchronize(Queue::kCopyOut));
    }
    used_chunks_ = std::max<int64_t>(2, written);
    return Ok{};
  }

  /// Lets the queues work beside each other.
  Result<std::array<Seen, ir::kNumQueues>> run(bool in, bool out, bool kernels) {
    PLIMSOLL_ASSIGN(const size_t ins, works_of(in, Queue::kCopyIn));
    PLIMSOLL_ASSIGN(const size_t outs, works_of(out, Queue::kCopyOut));
    const size_t launches = kernels ? works_in(seconds_, kernel_alone_) : 0;
    device_->log_queues(true);
    // In turns, so that no queue begins when another is through.
    const size_t most = std::max({ins, outs, launches});
    const auto is_due = [&](size_t i, size_t works) { return (i + 1) * works / most > i * works / most; };
    Status failed = Ok{};
    for (size_t i = 0; i < most && failed; ++i) {
      if (is_due(i, launches)) kernel_->launch();
      if (is_due(i, ins)) failed = copy(Queue::kCopyIn, next_in_++);
      if (failed && is_due(i, outs)) failed = copy(Queue::kCopyOut, next_out_++);
    }
    for (const Queue queue : {Queue::kCompute, Queue::kCopyIn, Queue::kCopyOut})
      if (failed) failed = device_->synchronize(queue);
    if (failed) failed = kernel_->status();
    const std::vector<QueueWork> log = device_->take_queue_log();
    device_->log_queues(false);
    PLIMSOLL_TRY(failed);
    return seen_in(log);
  }

 private:
  CopyBench(runtime::Device& device, int64_t chunk, double seconds)
      : chunk_(chunk), seconds_(seconds), device_(&device) {}

  [[nodiscard]] int64_t num_chunks() const { return away_->size().count / chunk_; }
  static size_t works_in(double seconds, double seconds_each) {
    return static_cast<size_t>(std::clamp(seconds / std::max(1e-6, seconds_each),
                                          static_cast<double>(kLeastWorks), static_cast<double>(kMostWorks)));
  }
  /// Copies in the time that the queue has, by how long one takes.
  Result<size_t> works_of(bool used, Queue queue) {
    if (!used) return size_t{0};
    const double start = now_seconds();
    for (int i = 0; i < 2; ++i) PLIMSOLL_TRY(copy(queue, i));
    PLIMSOLL_TRY(device_->synchronize(queue));
    return works_in(seconds_, (now_seconds() - start) / 2);
  }
  /// Reads have the first half of what is away, writes the second.
  Status copy(Queue queue, int64_t number) {
    const int64_t half = std::max<int64_t>(1, used_chunks_ / 2);
    const bool in = queue == Queue::kCopyIn;
    const runtime::Location here{here_.get(), in ? 0 : chunk_};
    const int64_t place = used_chunks_ == 0 ? number : number % half + (in ? 0 : half);
    const runtime::Location away{away_.get(), std::min(place, num_chunks() - 1) * chunk_};
    return in ? device_->copy(here, away, Bytes(chunk_), queue)
              : device_->copy(away, here, Bytes(chunk_), queue);
  }

  int64_t chunk_;
  double seconds_;
  runtime::Device* device_;
  std::unique_ptr<runtime::Memory> away_, here_;
  std::unique_ptr<OpTimer> kernel_;
  double kernel_alone_ = 0;
  int64_t used_chunks_ = 0;  ///< 0 while it is being filled
  int64_t next_in_ = 0, next_out_ = 0;
};

/// The CPU's, with a disk where a folder is given.
Result<std::unique_ptr<runtime::Device>> device_with_queues(const std::string& folder) {
  return devices::make_device(
      {.num_threads = num_available_cpus(), .disk_folder = folder, .has_queues = true});
}

/// What ways and combinations gave.
struct Measured {
  double in = 0, out = 0;                ///< alone
  double in_both = 0, out_both = 0;      ///< at once
  double in_beside = 0, out_beside = 0;  ///< beside kernels
  double kernel_seconds = 0;             ///< more, for each second of a copy
};

Result<Measured> measure(CopyBench& bench, const std::string& what, const Shown& shown) {
  constexpr auto kIn = static_cast<size_t>(Queue::kCopyIn), kOut = static_cast<size_t>(Queue::kCopyOut),
                 kCompute = static_cast<size_t>(Queue::kCompute);
  shown(0, what);
  PLIMSOLL_TRY(bench.fill());
  // The mean beside copies is held against a mean: what else the machine does is in both.
  PLIMSOLL_ASSIGN(const auto kernels, bench.run(false, false, true));
  PLIMSOLL_ASSIGN(const auto in, bench.run(true, false, false));
  PLIMSOLL_ASSIGN(const auto out, bench.run(false, true, false));
  shown(0.5, what + " both ways");
  PLIMSOLL_ASSIGN(const auto both, bench.run(true, true, false));
  shown(0.6, what + " beside kernels");
  PLIMSOLL_ASSIGN(const auto in_beside, bench.run(true, false, true));
  PLIMSOLL_ASSIGN(const auto out_beside, bench.run(false, true, true));
  const double beside = (in_beside[kCompute].kernel_seconds + out_beside[kCompute].kernel_seconds) / 2;
  const double alone = kernels[kCompute].kernel_seconds;
  const double longer = beside > 0 && alone > 0 ? beside / alone - 1 : 0;
  return Measured{.in = in[kIn].bytes_per_second,
                  .out = out[kOut].bytes_per_second,
                  .in_both = both[kIn].bytes_per_second,
                  .out_both = both[kOut].bytes_per_second,
                  .in_beside = in_beside[kIn].bytes_per_second,
                  .out_beside = out_beside[kOut].bytes_per_second,
                  .kernel_seconds = std::clamp(longer, 0.0, 16.0)};
}

}  // namespace

Status measure_copies(const CopyPlan& plan, planner::MachineProfile& profile, const Shown& shown) {
  PLIMSOLL_ASSIGN(const auto device, device_with_queues(""));
  return measure_copies(plan, *device, profile, shown);
}

Status measure_copies(const CopyPlan& plan, runtime::Device& device, planner::MachineProfile& profile,
                      const Shown& shown) {
  PLIMSOLL_ASSIGN(const auto bench, CopyBench::create(device, ir::MemorySpace::kHostPinned, plan.memory_bytes,
                                                      kMemoryChunk, plan.seconds));
  PLIMSOLL_ASSIGN(const Measured found, measure(*bench, "copies", shown));
  profile.copy_in_bandwidth = found.in;
  profile.copy_out_bandwidth = found.out;
  profile.copy_in_beside_kernels = found.in_beside;
  profile.copy_out_beside_kernels = found.out_beside;
  profile.copy_kernel_seconds = found.kernel_seconds;
  return Ok{};
}

Status measure_disk(const CopyPlan& plan, const std::string& folder, planner::MachineProfile& profile,
                    const Shown& shown) {
  const int64_t room = io::free_space(folder).value_or(plan.disk_bytes * 4) / 4;
  const int64_t bytes = std::max(kLeastDiskChunks, std::min(room, plan.disk_bytes) / kDiskChunk) * kDiskChunk;
  PLIMSOLL_ASSIGN(const auto device, device_with_queues(folder));
  PLIMSOLL_ASSIGN(const auto bench,
                  CopyBench::create(*device, ir::MemorySpace::kDisk, bytes, kDiskChunk, plan.seconds));
  PLIMSOLL_ASSIGN(const Measured found, measure(*bench, "disk", shown));
  profile.disk_read_bandwidth = found.in;
  profile.disk_write_bandwidth = found.out;
  profile.disk_read_beside_write = found.in_both;
  profile.disk_write_beside_read = found.out_both;
  profile.disk_read_beside_kernels = found.in_beside;
  profile.disk_write_beside_kernels = found.out_beside;
  profile.disk_kernel_seconds = found.kernel_seconds;
  shown(0.9, "the disk's cache");
  PLIMSOLL_ASSIGN(profile.disk_cached_bandwidth, cached_read_bandwidth(folder));
  profile.disk = folder;
  return Ok{};
}

}  // namespace plimsoll::measuring
