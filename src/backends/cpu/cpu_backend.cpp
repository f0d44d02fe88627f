#include "backends/cpu/cpu_backend.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "backends/cpu/cpu_memory.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/widened.h"
#include "base/check.h"

namespace plimsoll::cpu {

struct CpuBackend::Recording final : runtime::CapturedGraph {
  // A launch where the call has an op, a copy otherwise.
  struct Step {
    runtime::KernelCall call;
    std::byte* destination = nullptr;
    const std::byte* source = nullptr;
    int64_t bytes = 0;
  };
  std::vector<Step> steps;
};

CpuBackend::CpuBackend(int num_threads) : pool_(num_threads) {
  all_kernels();  // built here, so that no launch allocates it
}
CpuBackend::~CpuBackend() = default;

int64_t CpuBackend::workspace_bytes(const ir::OpTypes& types) const {
  const Kernel* kernel = find_kernel(types.op);
  return kernel == nullptr ? 0 : kernel_workspace_bytes(*kernel, types, pool_.num_threads());
}

bool CpuBackend::accepts_strided(std::string_view op, size_t input) const {
  const Kernel* kernel = find_kernel(op);
  return kernel != nullptr && input < 32 && ((kernel->strided_inputs >> input) & 1U) != 0;
}

bool CpuBackend::supports(std::string_view op) const { return find_kernel(op) != nullptr; }

Result<std::unique_ptr<runtime::Memory>> CpuBackend::allocate(ir::MemorySpace /*space*/, Bytes bytes) {
  return allocate_memory(bytes, pool_);
}

void CpuBackend::launch(const runtime::KernelCall& call, ir::Queue /*queue*/) {
  if (recording_)
    recording_->steps.push_back({.call = call});
  else
    run_kernel(call);
}

void CpuBackend::copy(std::byte* destination, const std::byte* source, Bytes bytes, ir::Queue /*queue*/) {
  if (recording_)
    recording_->steps.push_back(
        {.call = {}, .destination = destination, .source = source, .bytes = bytes.count});
  else
    run_copy(destination, source, bytes.count);
}

runtime::EventId CpuBackend::record(ir::Queue /*queue*/) { return {0}; }
void CpuBackend::wait(ir::Queue /*queue*/, runtime::EventId /*event*/) {}
void CpuBackend::synchronize(ir::Queue /*queue*/) {}

void CpuBackend::begin_capture() {
  PLIMSOLL_CHECK(!recording_, "begin_capture while capturing");
  recording_ = std::make_unique<Recording>();
}

std::unique_ptr<runtime::CapturedGraph> CpuBackend::end_capture() {
  PLIMSOLL_CHECK(recording_ != nullptr, "end_capture without begin_capture");
  return std::move(recording_);
}

void CpuBackend::replay(const runtime::CapturedGraph& graph) {
  for (const Recording::Step& step : static_cast<const Recording&>(graph).steps) {
    if (step.call.op != nullptr)
      run_kernel(step.call);
    else
      run_copy(step.destination, step.source, step.bytes);
  }
}

void CpuBackend::run_kernel(const runtime::KernelCall& call) {
  const Kernel* kernel = find_kernel(call.op->def->name);
  PLIMSOLL_CHECK(kernel != nullptr, "no CPU kernel for " + std::string(call.op->def->name));
  cpu::run_kernel(*kernel, call, pool_);
}

void CpuBackend::run_copy(std::byte* destination, const std::byte* source, int64_t bytes) {
  constexpr int64_t kBlock = 1 << 20;
  pool_.run(ceil_div(bytes, kBlock), [&](int64_t tile, int) {
    const int64_t at = tile * kBlock;
    std::memcpy(destination + at, source + at, static_cast<size_t>(std::min(kBlock, bytes - at)));
  });
}

}  // namespace plimsoll::cpu
