#include "backends/cpu/cpu_device.h"

#include <utility>
#include <vector>

#include "backends/cpu/cpu_memory.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/widened.h"
#include "base/check.h"

namespace plimsoll::cpu {

struct CpuDevice::Step {
  enum class Kind : uint8_t { kLaunch, kCopy, kFill } kind = Kind::kLaunch;
  uint32_t pattern = 0;
  const Kernel* kernel = nullptr;
  runtime::KernelCall call = {};  ///< `op` alone for a copy
  Place destination = {}, source = {};
  int64_t bytes = 0;
};

struct CpuDevice::Recording final : runtime::CapturedGraph {
  std::vector<Step> steps;
};

CpuDevice::CpuDevice(int num_threads, std::string disk_folder)
    : target_(num_threads), disk_folder_(std::move(disk_folder)), pool_(num_threads) {
  all_kernels();  // built here, so that no launch allocates it
}
CpuDevice::~CpuDevice() = default;

Result<std::unique_ptr<runtime::Memory>> CpuDevice::allocate(ir::MemorySpace space, Bytes bytes) {
  if (space == ir::MemorySpace::kDisk) return DiskMemory::create(bytes, disk_folder_);
  const std::lock_guard turn(pool_turn_);
  return allocate_memory(space, bytes, pool_);
}

Status CpuDevice::launch(const runtime::KernelCall& call, ir::Queue /*queue*/) {
  return issue({.kind = Step::Kind::kLaunch, .kernel = &kernel_of(*call.op), .call = call});
}

Status CpuDevice::copy(runtime::Location destination, runtime::Location source, Bytes bytes,
                       ir::Queue /*queue*/, const ir::Op* op) {
  return issue({.kind = Step::Kind::kCopy,
                .call = {op, {}, {}, {}},
                .destination = place_of(destination, bytes),
                .source = place_of(source, bytes),
                .bytes = bytes.count});
}

Status CpuDevice::fill(runtime::Location destination, Bytes bytes, uint32_t pattern, ir::Queue /*queue*/) {
  return issue({.kind = Step::Kind::kFill,
                .pattern = pattern,
                .destination = place_of(destination, bytes),
                .bytes = bytes.count});
}

Status CpuDevice::issue(const Step& step) {
  if (!recording_) return run(step);
  recording_->steps.push_back(step);
  return Ok{};
}

Status CpuDevice::run(const Step& step) {
  std::unique_lock turn(pool_turn_, std::defer_lock);
  if (step.kind == Step::Kind::kLaunch) {
    turn.lock();
    run_kernel(*step.kernel, step.call, pool_);
    return Ok{};
  }
  ThreadPool* const pool = turn.try_lock() ? &pool_ : nullptr;
  if (step.kind == Step::Kind::kFill) return cpu::fill(step.destination, step.bytes, step.pattern, pool);
  return named(transfer(step.destination, step.source, step.bytes, pool), "copy", step.call.op);
}

runtime::EventId CpuDevice::make_event() {
  PLIMSOLL_CHECK(!recording_, "make_event while capturing");
  return {num_events_++};
}
Status CpuDevice::record(runtime::EventId /*event*/, ir::Queue /*queue*/) { return Ok{}; }
Status CpuDevice::wait(ir::Queue /*queue*/, runtime::EventId /*event*/) { return Ok{}; }
Status CpuDevice::synchronize(ir::Queue /*queue*/) { return Ok{}; }
Status CpuDevice::synchronize(runtime::EventId /*event*/) { return Ok{}; }

Status CpuDevice::begin_capture() {
  PLIMSOLL_CHECK(!recording_, "begin_capture while capturing");
  recording_ = std::make_unique<Recording>();
  return Ok{};
}

Result<std::unique_ptr<runtime::CapturedGraph>> CpuDevice::end_capture() {
  PLIMSOLL_CHECK(recording_ != nullptr, "end_capture without begin_capture");
  return std::unique_ptr<runtime::CapturedGraph>(std::move(recording_));
}

Status CpuDevice::replay(const runtime::CapturedGraph& graph) {
  PLIMSOLL_CHECK(!recording_, "replay while capturing");
  for (const Step& step : static_cast<const Recording&>(graph).steps) PLIMSOLL_TRY(run(step));
  return Ok{};
}

}  // namespace plimsoll::cpu
