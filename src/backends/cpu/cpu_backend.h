// The CPU as a device: every call has finished when it returns, queues differ in name alone.
#pragma once

#include <memory>
#include <vector>

#include "backends/cpu/thread_pool.h"
#include "runtime/backend.h"

namespace plimsoll::cpu {

/// Runs kernels on a pool of `num_threads` threads, the caller's included. Launching, copying and replaying
/// allocate nothing.
/// Determinism: results do not depend on the number of threads; workspaces do.
/// Capture: as on a device, calls between begin_capture and end_capture are recorded and not run.
class CpuBackend final : public runtime::Backend {
 public:
  explicit CpuBackend(int num_threads);
  ~CpuBackend() override;

  [[nodiscard]] std::string_view name() const override { return "cpu"; }
  [[nodiscard]] int64_t workspace_bytes(const ir::OpTypes& types) const override;
  [[nodiscard]] bool accepts_strided(std::string_view op, size_t input) const override;
  [[nodiscard]] bool supports(std::string_view op) const override;

  Result<std::unique_ptr<runtime::Memory>> allocate(ir::MemorySpace space, Bytes bytes) override;
  void launch(const runtime::KernelCall& call, ir::Queue queue) override;
  void copy(std::byte* destination, const std::byte* source, Bytes bytes, ir::Queue queue) override;
  runtime::EventId record(ir::Queue queue) override;
  void wait(ir::Queue queue, runtime::EventId event) override;
  void synchronize(ir::Queue queue) override;
  void begin_capture() override;
  std::unique_ptr<runtime::CapturedGraph> end_capture() override;
  void replay(const runtime::CapturedGraph& graph) override;

  [[nodiscard]] ThreadPool& pool() { return pool_; }

 private:
  struct Recording;
  void run_kernel(const runtime::KernelCall& call);
  void run_copy(std::byte* destination, const std::byte* source, int64_t bytes);

  ThreadPool pool_;
  std::unique_ptr<Recording> recording_;  ///< while capturing
};

}  // namespace plimsoll::cpu
