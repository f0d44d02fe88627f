#include "backends/discrete/discrete_device.h"

#include <deque>
#include <utility>

#include "backends/cpu/cpu_memory.h"
#include "base/at.h"
#include "base/check.h"

namespace plimsoll::discrete {
namespace {

using ir::Queue;
constexpr Queue kAll[] = {Queue::kCompute, Queue::kCopyIn, Queue::kCopyOut, Queue::kHost, ir::kNetworkQueue};
static_assert(std::size(kAll) == ir::kNumAllQueues);

/// A signalling NaN as f32, no token as i32: what a program reads before it is written shows in its numbers.
constexpr uint32_t kUndefined = 0x7fa5a5a5;

std::unique_ptr<const runtime::Target> make_target(const DiscreteOptions& options) {
  if (options.shares_host) return std::make_unique<cpu::CpuTarget>(options.num_threads);
  return std::make_unique<DiscreteTarget>(options.num_threads, options.memory);
}

}  // namespace

struct DiscreteDevice::Recording final : runtime::CapturedGraph {
  explicit Recording(Queues& q) : queues(q) {}
  ~Recording() override {
    for (const Queue queue : kAll)
      if (last_replay[at(queue)] > 0) queues[queue].wait_list(last_replay[at(queue)]);
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  CapturedList& list(Queue queue) { return lists[at(queue)]; }
  [[nodiscard]] const CapturedList& list(Queue queue) const { return lists[at(queue)]; }

  Queues& queues;
  std::array<CapturedList, ir::kNumAllQueues> lists;
  std::vector<Point> events;  ///< counted from the capture's begin; as DiscreteDevice::events_
  std::deque<std::vector<runtime::TensorRef>> operands;  ///< of launches, with checks
  mutable Bases last_replay{};  ///< for each queue the number of its list, 0: none yet
};

Result<std::unique_ptr<DiscreteDevice>> DiscreteDevice::create(const DiscreteOptions& options) {
  std::unique_ptr<DiscreteDevice> device(new DiscreteDevice(options));
  PLIMSOLL_TRY(device->queues_.start());
  return device;
}

DiscreteDevice::DiscreteDevice(const DiscreteOptions& options)
    : target_(make_target(options)), memory_(options.memory, options.check), queues_(options) {
  cpu::all_kernels();  // built here, so that no launch allocates it
}
DiscreteDevice::~DiscreteDevice() = default;

Result<std::unique_ptr<runtime::Memory>> DiscreteDevice::allocate(ir::MemorySpace space, Bytes bytes) {
  PLIMSOLL_TRY(queues_.status());
  if (space == ir::MemorySpace::kDisk) return cpu::DiskMemory::create(bytes, queues_.options.disk_folder);
  const std::lock_guard turn(queues_.pool_turn);
  std::unique_ptr<runtime::Memory> memory;
  if (space == ir::MemorySpace::kDevice && !queues_.options.shares_host) {
    PLIMSOLL_ASSIGN(memory, memory_.allocate(bytes, queues_.pool));
  } else {
    PLIMSOLL_ASSIGN(memory, cpu::allocate_memory(space, bytes, queues_.pool));
  }
  if (queues_.options.check || queues_.options.seed)
    PLIMSOLL_TRY(cpu::fill(place_of({memory.get(), 0}, bytes), bytes.count, kUndefined, &queues_.pool));
  return memory;
}

cpu::Place DiscreteDevice::place_of(runtime::Location location, Bytes bytes) const {
  cpu::Place place = cpu::place_of(location, bytes);
  if (place.space == ir::MemorySpace::kDevice && !queues_.options.shares_host)
    place.data = static_cast<const DeviceMemory*>(location.memory)->reach() + location.offset;
  return place;
}

Status DiscreteDevice::issue(const cpu::Work& work, Queue queue) {
  PLIMSOLL_TRY(queues_.status());
  if (!recording_) {
    const std::lock_guard turn(issue_turn_);
    queues_[queue].push(work, memory_);
    return Ok{};
  }
  CapturedList& list = recording_->list(queue);
  list.push_back({.work = work});
  if (memory_.looks_up(work, queue))
    list.back().work.call = memory_.reach(work.call, recording_->operands.emplace_back());
  return Ok{};
}

Status DiscreteDevice::launch(const runtime::KernelCall& call, Queue queue) {
  return issue(cpu::Work::launch(call, queues_.options.communicator), queue);
}

Status DiscreteDevice::copy(runtime::Location destination, runtime::Location source, Bytes bytes, Queue queue,
                            const ir::Op* op) {
  return issue(cpu::Work::copy(place_of(destination, bytes), place_of(source, bytes), bytes, op), queue);
}

Status DiscreteDevice::fill(runtime::Location destination, Bytes bytes, uint32_t pattern, Queue queue) {
  return issue(cpu::Work::fill(place_of(destination, bytes), bytes, pattern), queue);
}

void DiscreteDevice::count_thread_seconds(bool on) {
  const std::lock_guard turn(queues_.pool_turn);
  queues_.pool.count_seconds(on);
}
std::span<const double> DiscreteDevice::take_thread_seconds() {
  const std::lock_guard turn(queues_.pool_turn);
  return queues_.pool.take_seconds();
}

void DiscreteDevice::log_queues(bool on) {
  for (const auto& queue : queues_.all) queue->log(on);
}
std::vector<runtime::QueueWork> DiscreteDevice::take_queue_log() {
  std::vector<runtime::QueueWork> all;
  for (const auto& queue : queues_.all) {
    const std::vector<runtime::QueueWork> log = queue->take_log();
    all.insert(all.end(), log.begin(), log.end());
  }
  return all;
}

runtime::EventId DiscreteDevice::make_event() {
  PLIMSOLL_CHECK(!recording_, "make_event while capturing");
  const std::lock_guard turn(events_turn_);
  events_.emplace_back();
  return {static_cast<int32_t>(events_.size()) - 1};
}

Status DiscreteDevice::record(runtime::EventId event, Queue queue) {
  PLIMSOLL_TRY(queues_.status());
  const std::lock_guard turn(events_turn_);
  const auto e = static_cast<size_t>(event.index);
  PLIMSOLL_CHECK(e < events_.size(), "record of an event that was not made");
  if (!recording_) {
    events_[e] = queues_[queue].now();
    return Ok{};
  }
  recording_->events.resize(events_.size());
  recording_->events[e] = {queue, recording_->list(queue).size()};
  return Ok{};
}

Point DiscreteDevice::point_of(runtime::EventId event) {
  const std::lock_guard turn(events_turn_);
  const auto e = static_cast<size_t>(event.index);
  PLIMSOLL_CHECK(e < events_.size(), "an event that was not made");
  if (!recording_) return events_[e];
  return e < recording_->events.size() ? recording_->events[e] : Point{};
}

Status DiscreteDevice::wait(Queue queue, runtime::EventId event) {
  PLIMSOLL_TRY(queues_.status());
  const Point point = point_of(event);
  if (point.ended == 0 || point.queue == queue) return Ok{};
  if (recording_) {
    recording_->list(queue).push_back({.is_wait = true, .wait = point});
    return Ok{};
  }
  const std::lock_guard turn(issue_turn_);
  queues_[queue].push_wait(point);
  return Ok{};
}

Status DiscreteDevice::synchronize(Queue queue) {
  PLIMSOLL_CHECK(!recording_, "synchronize while capturing");
  queues_[queue].wait_ended(queues_[queue].now().ended, false);
  return queues_.status();
}

Status DiscreteDevice::synchronize(runtime::EventId event) {
  PLIMSOLL_CHECK(!recording_, "synchronize while capturing");
  const Point point = point_of(event);
  queues_[point.queue].wait_ended(point.ended, false);
  return queues_.status();
}

Status DiscreteDevice::begin_capture() {
  PLIMSOLL_CHECK(!recording_, "begin_capture while capturing");
  PLIMSOLL_TRY(queues_.status());
  recording_ = std::make_unique<Recording>(queues_);
  return Ok{};
}

Result<std::unique_ptr<runtime::CapturedGraph>> DiscreteDevice::end_capture() {
  PLIMSOLL_CHECK(recording_ != nullptr, "end_capture without begin_capture");
  std::unique_ptr<runtime::CapturedGraph> graph = std::move(recording_);
  PLIMSOLL_TRY(queues_.status());
  return graph;
}

Status DiscreteDevice::replay(const runtime::CapturedGraph& graph) {
  PLIMSOLL_CHECK(!recording_, "replay while capturing");
  PLIMSOLL_TRY(queues_.status());
  const auto& captured = static_cast<const Recording&>(graph);
  const auto is_used = [&](Queue queue) { return !captured.list(queue).empty(); };
  const std::lock_guard turn(issue_turn_);  // points count from where every queue stands now
  const Point before = queues_[Queue::kCompute].now();
  for (const Queue queue : kAll)
    if (queue != Queue::kCompute && is_used(queue) && before.ended > 0) queues_[queue].push_wait(before);
  Bases bases;
  for (const Queue queue : kAll) bases[at(queue)] = queues_[queue].now().ended;
  for (const Queue queue : kAll)
    if (is_used(queue))
      captured.last_replay[at(queue)] = queues_[queue].push_list(captured.list(queue), bases);
  return Ok{};
}

}  // namespace plimsoll::discrete
