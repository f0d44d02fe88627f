#include "backends/cpu/cpu_device.h"

#include <utility>
#include <vector>

#include "backends/cpu/cpu_memory.h"
#include "base/at.h"
#include "base/check.h"
#include "ir/network_queue.h"

namespace plimsoll::cpu {

struct CpuDevice::Recording final : runtime::CapturedGraph {
  std::vector<Step> steps;
};

CpuDevice::CpuDevice(int num_threads, std::string disk_folder, runtime::Communicator* communicator)
    : target_(num_threads),
      disk_folder_(std::move(disk_folder)),
      communicator_(communicator),
      pool_(num_threads) {
  all_kernels();  // built here, so that no launch allocates it
  if (communicator != nullptr) network_.emplace(*communicator);
}
CpuDevice::~CpuDevice() = default;

Result<std::unique_ptr<runtime::Memory>> CpuDevice::allocate(ir::MemorySpace space, Bytes bytes) {
  if (space == ir::MemorySpace::kDisk) return DiskMemory::create(bytes, disk_folder_);
  const std::lock_guard turn(pool_turn_);
  return allocate_memory(space, bytes, pool_);
}

Status CpuDevice::launch(const runtime::KernelCall& call, ir::Queue queue) {
  return issue({.queue = queue, .work = Work::launch(call, communicator_)});
}

Status CpuDevice::copy(runtime::Location destination, runtime::Location source, Bytes bytes, ir::Queue queue,
                       const ir::Op* op) {
  return issue(
      {.queue = queue, .work = Work::copy(place_of(destination, bytes), place_of(source, bytes), bytes, op)});
}

Status CpuDevice::fill(runtime::Location destination, Bytes bytes, uint32_t pattern, ir::Queue queue) {
  return issue({.queue = queue, .work = Work::fill(place_of(destination, bytes), bytes, pattern)});
}

Status CpuDevice::issue(const Step& step) {
  if (!recording_) return run(step);
  recording_->steps.push_back(step);
  return Ok{};
}

Status CpuDevice::run(const Step& step) {
  if (step.kind == Step::Kind::kWork)
    return network_ && step.queue == ir::kNetworkQueue ? network_->queue(step.work) : run(step.work);
  const bool is_networks = step.queue == ir::kNetworkQueue;
  uint64_t& point = points_[at(step.event)];
  if (step.kind == Step::Kind::kRecord) {
    point = is_networks ? network_->queued() : 0;
    return Ok{};
  }
  // What is queued for other ranks begins behind all that has run here.
  return is_networks || point == 0 ? Status(Ok{}) : network_->wait(point);
}

Status CpuDevice::run(const Work& work) {
  std::unique_lock turn(pool_turn_, std::defer_lock);
  if (work.kind == Work::Kind::kLaunch)
    turn.lock();
  else if (!turn.try_lock())
    return cpu::run(work, nullptr);
  return cpu::run(work, &pool_);
}

void CpuDevice::run_parts(int64_t parts, const std::function<void(int64_t)>& part) {
  const std::lock_guard turn(pool_turn_);
  pool_.run(parts, [&](int64_t i, int /*thread*/) { part(i); });
}

void CpuDevice::count_thread_seconds(bool on) {
  const std::lock_guard turn(pool_turn_);
  pool_.count_seconds(on);
}
std::span<const double> CpuDevice::take_thread_seconds() {
  const std::lock_guard turn(pool_turn_);  // a checkpoint's thread may be filling it
  return pool_.take_seconds();
}

runtime::EventId CpuDevice::make_event() {
  PLIMSOLL_CHECK(!recording_, "make_event while capturing");
  points_.push_back(0);
  return {static_cast<int32_t>(points_.size()) - 1};
}
Status CpuDevice::record(runtime::EventId event, ir::Queue queue) {
  if (!network_) return Ok{};
  return issue({.kind = Step::Kind::kRecord, .queue = queue, .event = event.index});
}
Status CpuDevice::wait(ir::Queue queue, runtime::EventId event) {
  if (!network_) return Ok{};
  return issue({.kind = Step::Kind::kWait, .queue = queue, .event = event.index});
}
Status CpuDevice::synchronize(ir::Queue queue) {
  PLIMSOLL_CHECK(!recording_, "synchronize while capturing");
  return network_ && queue == ir::kNetworkQueue ? network_->wait(network_->queued()) : Status(Ok{});
}
Status CpuDevice::synchronize(runtime::EventId event) {
  PLIMSOLL_CHECK(!recording_, "synchronize while capturing");
  return network_ ? network_->wait(points_[at(event.index)]) : Status(Ok{});
}

Status CpuDevice::begin_capture() {
  PLIMSOLL_CHECK(!recording_, "begin_capture while capturing");
  if (network_) PLIMSOLL_TRY(network_->start());
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
