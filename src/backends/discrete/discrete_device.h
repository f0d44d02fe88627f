// A device whose memory the host cannot touch, on a machine without one: the CPU's kernels behind queues that
// have threads of their own.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "backends/discrete/device_memory.h"
#include "backends/discrete/discrete_target.h"
#include "backends/discrete/work_queue.h"
#include "runtime/device.h"

namespace plimsoll::discrete {

/// Async: launches, copies, fills and replays return at once, or wait where 256 of them are queued already.
/// Memory: device memory has no host(); with options.check its address faults under the host and under
/// kernels on kHost, and operands of other kernels that are not in it are a bug that aborts. With
/// options.check or a seed all memory but the disk's comes filled with signalling NaNs. Replaying, copying
/// and filling allocate nothing, and launching nothing after a while. Determinism: results are the CPU's, bit
/// for bit, whatever the seed. Errors: the first one stops the device for good: what has not begun does not
/// run, every later call returns it.
class DiscreteDevice final : public runtime::Device {
 public:
  /// Errors: kIo where the system gives no threads for the queues.
  static Result<std::unique_ptr<DiscreteDevice>> create(const DiscreteOptions& options);
  /// Drops what is queued and has not begun. Its memory may go after it.
  ~DiscreteDevice() override;

  [[nodiscard]] const runtime::Target& target() const override { return *target_; }
  Result<std::unique_ptr<runtime::Memory>> allocate(ir::MemorySpace space, Bytes bytes) override;

  [[nodiscard]] Bytes peak_memory() const override { return memory_.peak(); }

  Status launch(const runtime::KernelCall& call, ir::Queue queue) override;
  Status copy(runtime::Location destination, runtime::Location source, Bytes bytes, ir::Queue queue,
              const ir::Op* op = nullptr) override;
  Status fill(runtime::Location destination, Bytes bytes, uint32_t pattern, ir::Queue queue) override;

  void count_thread_seconds(bool on) override;
  std::span<const double> take_thread_seconds() override;

  [[nodiscard]] bool has_queue_log() const override { return true; }
  void log_queues(bool on) override;
  std::vector<runtime::QueueWork> take_queue_log() override;

  runtime::EventId make_event() override;
  Status record(runtime::EventId event, ir::Queue queue) override;
  Status wait(ir::Queue queue, runtime::EventId event) override;
  Status synchronize(ir::Queue queue) override;
  Status synchronize(runtime::EventId event) override;

  Status begin_capture() override;
  Result<std::unique_ptr<runtime::CapturedGraph>> end_capture() override;
  Status replay(const runtime::CapturedGraph& graph) override;

 private:
  struct Recording;
  explicit DiscreteDevice(const DiscreteOptions& options);
  Status issue(const cpu::Work& work, ir::Queue queue);
  [[nodiscard]] Point point_of(runtime::EventId event);
  [[nodiscard]] cpu::Place place_of(runtime::Location location, Bytes bytes) const;

  const std::unique_ptr<const runtime::Target> target_;
  DevicePool memory_;
  Queues queues_;
  std::mutex issue_turn_;  ///< a checkpoint is read on kCopyOut beside programs that store there
  std::mutex events_turn_;
  std::vector<Point> events_;             ///< ended == 0: never recorded
  std::unique_ptr<Recording> recording_;  ///< while capturing
};

}  // namespace plimsoll::discrete
