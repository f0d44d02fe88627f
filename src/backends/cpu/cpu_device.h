// The CPU as a device: a call has finished when it returns, and queues differ in name alone, but for the one
// on which ranks exchange bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/cpu_target.h"
#include "backends/cpu/network_thread.h"
#include "backends/cpu/thread_pool.h"
#include "backends/cpu/work.h"
#include "runtime/device.h"

namespace plimsoll::cpu {

/// Runs kernels on a pool of threads, the caller's included.
/// Async: with a communicator what is queued on ir::kNetworkQueue runs beside the rest, on a thread of its
/// own; waiting for an event of that queue waits for it. Without one no call is.
/// Memory: all spaces but the disk are the process's own, mapped and touched at once. Launching, copying,
/// filling and replaying allocate nothing.
/// Determinism: results do not depend on the number of threads; workspaces do.
/// Errors: a call that fails says so itself; the device goes on. What fails between ranks says so where it is
/// waited for, and nothing more is exchanged behind it.
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
  /// What a call asks for: work, or an event of which only points of the network's queue count.
  struct Step {
    enum class Kind : uint8_t { kWork, kRecord, kWait } kind = Kind::kWork;
    ir::Queue queue = ir::Queue::kCompute;
    int32_t event = -1;
    Work work = {};
  };
  Status run(const Step& step);
  Status run(const Work& work);
  Status issue(const Step& step);

  CpuTarget target_;
  std::string disk_folder_;
  runtime::Communicator* communicator_;
  ThreadPool pool_;
  std::mutex pool_turn_;
  std::optional<NetworkThread> network_;  ///< none: the device is alone
  /// By event: how many of the network's works it stands for; 0: it is of another queue, or none.
  std::vector<uint64_t> points_;
  std::unique_ptr<Recording> recording_;  ///< while capturing
};

}  // namespace plimsoll::cpu
