// The CPU as a device: every call has finished when it returns, queues differ in name alone.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "backends/cpu/cpu_target.h"
#include "backends/cpu/thread_pool.h"
#include "backends/cpu/work.h"
#include "runtime/device.h"

namespace plimsoll::cpu {

/// Runs kernels on a pool of threads, the caller's included.
/// Memory: all spaces but the disk are the process's own, mapped and touched at once. Launching, copying,
/// filling and replaying allocate nothing.
/// Determinism: results do not depend on the number of threads; workspaces do.
/// Errors: a call that fails says so itself; the device goes on.
/// Threads: kernels, and copies and fills that find the pool free, take turns at it; a copy or fill that
/// finds it busy runs on its caller's thread alone.
class CpuDevice final : public runtime::Device {
 public:
  /// `disk_folder` is where memory on the disk lies; empty: there is none. `communicator` is what ops between
  /// ranks go through and outlives the device; null: it is alone.
  explicit CpuDevice(int num_threads, std::string disk_folder = {},
                     runtime::Communicator* communicator = nullptr);
  ~CpuDevice() override;

  [[nodiscard]] const runtime::Target& target() const override { return target_; }
  Result<std::unique_ptr<runtime::Memory>> allocate(ir::MemorySpace space, Bytes bytes) override;

  [[nodiscard]] Bytes peak_memory() const override { return {}; }

  Status launch(const runtime::KernelCall& call, ir::Queue queue) override;
  Status copy(runtime::Location destination, runtime::Location source, Bytes bytes, ir::Queue queue,
              const ir::Op* op = nullptr) override;
  Status fill(runtime::Location destination, Bytes bytes, uint32_t pattern, ir::Queue queue) override;

  void run_parts(int64_t parts, const std::function<void(int64_t)>& part) override;

  void count_thread_seconds(bool on) override;
  std::span<const double> take_thread_seconds() override;

  runtime::EventId make_event() override;
  Status record(runtime::EventId event, ir::Queue queue) override;
  Status wait(ir::Queue queue, runtime::EventId event) override;
  Status synchronize(ir::Queue queue) override;
  Status synchronize(runtime::EventId event) override;

  Status begin_capture() override;
  Result<std::unique_ptr<runtime::CapturedGraph>> end_capture() override;
  Status replay(const runtime::CapturedGraph& graph) override;

  [[nodiscard]] ThreadPool& pool() { return pool_; }

 private:
  struct Recording;
  Status run(const Work& work);
  Status issue(const Work& work);

  CpuTarget target_;
  std::string disk_folder_;
  runtime::Communicator* communicator_;
  ThreadPool pool_;
  std::mutex pool_turn_;
  int32_t num_events_ = 0;
  std::unique_ptr<Recording> recording_;  ///< while capturing
};

}  // namespace plimsoll::cpu
