// An NVIDIA card: streams for queues, CUDA's graphs for what is captured.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/thread_pool.h"
#include "backends/cpu/work.h"
#include "backends/cuda/api.h"
#include "backends/cuda/card_info.h"
#include "backends/cuda/collectives.h"
#include "backends/cuda/cuda_target.h"
#include "backends/cuda/deferred_capture.h"
#include "backends/cuda/module.h"
#include "backends/cuda/products.h"
#include "backends/cuda/queue_timer.h"
#include "ir/network_queue.h"
#include "runtime/communicator.h"
#include "runtime/device.h"

namespace plimsoll::cuda {

struct CudaOptions {
  int ordinal = 0;
  Bytes memory = {};     ///< what plans may take; 0: what the card has
  int host_threads = 1;  ///< with which the host's kernels compute
  /// What will run: modules of their kernels alone are compiled before. Empty: those of all kernels. They
  /// need not outlive the device's making.
  std::vector<const ir::Graph*> programs = {};
  std::string products = {};  ///< what tune_products found, for the products that it names; empty: nothing
  bool compiles_within =
      false;  ///< no cache: a module is compiled in this process when it is needed, for tests
  /// Of the ranks of the run; outlives the device. Null: there are no other ranks.
  runtime::Communicator* communicator = nullptr;
  bool uses_nccl = false;  ///< for what ops exchange between ranks; else through `communicator`
};

/// Async: launches, copies, fills and replays return at once. Memory on the disk there is none. What is
/// launched on kHost are the CPU's kernels, on a thread of the driver's and a pool beside it.
/// Memory: an allocation is the driver's, in units of 2 MiB; the context's own, and that of graphs, is not
/// counted (peak_memory) and measured apart.
/// Launches: from compute capability 9.0 on, with a driver of CUDA 12.3, a kernel's blocks may come while the
/// last ones of the kernel before still run; each waits before it touches memory.
/// Determinism: the same bits in each run on one kind of card with one version of cuBLASLt.
/// Errors: the first one stops the device for good, as the driver has it; a late one names the queue, for
/// CUDA does not say which work it was. With PLIMSOLL_CUDA_SYNCHRONOUS=1 in the environment each launch
/// outside a capture is waited for, and an error names its op.
struct DeviceMemoryCount;

class CudaDevice final : public runtime::Device {
 public:
  /// Errors: kIo where driver, compiler or cuBLASLt are not there, or refuse; kInvalidArgument as card_info;
  /// kBadData where options.products is damaged.
  static Result<std::unique_ptr<CudaDevice>> create(const CudaOptions& options);
  ~CudaDevice() override;

  /// Times cuBLASLt's algorithms for the products of these programs (product_tuning.h), before anything else
  /// runs. Errors: of the driver.
  Result<std::string> tune_products(std::span<const ir::Graph* const> programs);

  [[nodiscard]] const runtime::Target& target() const override { return target_; }
  Result<std::unique_ptr<runtime::Memory>> allocate(ir::MemorySpace space, Bytes bytes) override;
  [[nodiscard]] Bytes peak_memory() const override;

  Status launch(const runtime::KernelCall& call, ir::Queue queue) override;
  Status copy(runtime::Location destination, runtime::Location source, Bytes bytes, ir::Queue queue,
              const ir::Op* op = nullptr) override;
  Status fill(runtime::Location destination, Bytes bytes, uint32_t pattern, ir::Queue queue) override;

  [[nodiscard]] bool has_queue_log() const override { return true; }
  [[nodiscard]] bool logs_what_it_captures() const override { return true; }
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
  /// What is recorded within a capture leaves what was recorded outside as it is.
  struct Event {
    Handle outside = nullptr, within = nullptr;
    int error = 0;          ///< with which the driver refused it
    bool recorded = false;  ///< outside
    int capture = 0;        ///< the number of the last capture within which it was recorded
  };
  class Queued;
  /// The host's part of a queue's work: a kernel, a fill of memory that the card does not reach, an exchange
  /// between ranks.
  struct HostWork {
    std::function<void()> run;
    bool is_kept = false;  ///< captured: it may be replayed
  };
  class Graph;
  CudaDevice(const Api& api, const CardInfo& card, const CudaOptions& options);
  Status run_on_host(std::function<void()> work, Handle stream, std::string_view what,
                     const ir::Op* op = nullptr);
  Status launch_on_host(const runtime::KernelCall& call);
  Status launch_on_card(const runtime::KernelCall& call, ir::Queue queue);
  Status take_ranks(const CudaOptions& options);
  Status defer(std::function<Status()> call);
  Status capture_deferred(DeferredCapture& capture);
  Status connect_for(DeferredCapture& capture);
  Status wait_for(int (*finish)(Handle), int (*query)(Handle), Handle handle, std::string_view what);
  Status start(const CudaOptions& options);
  [[nodiscard]] bool can_begin_early() const;
  /// Queues it, between two events where queues are logged.
  template <typename Queueing>
  Status timed(const runtime::QueueWork& work, Queueing&& queueing);
  Status checked(int error, std::string_view what, const ir::Op* op = nullptr) const;
  Status use_context() const;
  [[nodiscard]] Status exchanged() const;
  [[nodiscard]] int join_capture() const;
  int leave_capture(int error, Handle* graph);
  [[nodiscard]] Handle stream(ir::Queue queue) const { return streams_[static_cast<size_t>(queue)]; }

  const Api& api_;
  const Driver& driver_;
  CardInfo card_;
  CudaTarget target_;
  int device_ = 0;
  bool synchronous_ = false;
  bool begins_early_ = false;  ///< a kernel may come before the one before it has ended (device/grid.cuh)
  int log_error_ = 0;          ///< with which the driver refused the log
  Handle context_ = nullptr;
  std::array<Handle, ir::kNumAllQueues> streams_{};
  Modules modules_;
  std::optional<Products> products_;
  std::mutex events_turn_;
  std::vector<Event> events_;
  std::mutex host_turn_;
  std::deque<HostWork> captured_;  ///< of the capture that has begun
  runtime::Communicator* communicator_;
  std::unique_ptr<runtime::Memory> rank_staging_;
  std::unique_ptr<Collectives> collectives_;
  bool defers_ = false;                        ///< captures, until ranks are connected
  std::shared_ptr<DeferredCapture> deferred_;  ///< the one that has begun
  std::vector<std::weak_ptr<DeferredCapture>> all_deferred_;
  int host_threads_;
  std::unique_ptr<cpu::ThreadPool>
      host_pool_;  ///< made when it is needed: without threads a child may compile
  QueueTimer timer_;
  Handle fork_ = nullptr;  ///< by which queues join a capture and its end
  std::array<Handle, ir::kNumAllQueues> joins_{};
  bool capturing_ = false;
  int captures_ = 0;
  std::shared_ptr<DeviceMemoryCount> count_;
};

}  // namespace plimsoll::cuda
