#include "backends/discrete/work_queue.h"

#include <string>
#include <thread>
#include <utility>

#include "base/caught.h"
#include "base/process.h"

namespace plimsoll::discrete {
namespace {

using Clock = Counter::Clock;

// The system wakes a sleeper late by so much; the rest of a wait is spent awake.
constexpr auto kOversleep = std::chrono::microseconds(100);

void sleep_until_exactly(Clock::time_point end) {
  if (end - Clock::now() > kOversleep) std::this_thread::sleep_until(end - kOversleep);
  while (Clock::now() < end) std::this_thread::yield();
}

/// From `begin` to `end` of a copy.
cpu::Work part_of(const cpu::Work& copy, int64_t begin, int64_t end) {
  cpu::Work part = copy;
  part.destination = copy.destination.behind(begin);
  part.source = copy.source.behind(begin);
  part.bytes = end - begin;
  return part;
}

Error injected(const cpu::Work& work, ir::Queue queue, uint64_t number) {
  return named({ErrorCode::kIo,
                "the device failed: a fault was injected into work " + std::to_string(number) + " of " +
                    std::string(ir::name(queue)),
                "PLIMSOLL_FAULT", "run again without it"},
               work);
}

}  // namespace

Queues::Queues(const DiscreteOptions& o) : options(o), adversary(o.seed), pool(o.num_threads) {
  for (size_t q = 0; q < all.size(); ++q) {
    const auto queue = static_cast<ir::Queue>(q);
    const bool computes = queue == ir::Queue::kHost && !o.shares_host;
    all[q] = std::make_unique<WorkQueue>(queue, *this, computes ? o.num_threads : 1);
  }
}

Status Queues::start() {
  for (const auto& queue : all)
    if (queue->is_used()) PLIMSOLL_TRY(queue->start());
  return Ok{};
}

Status Queues::status() {
  if (!failure.occurred()) return Ok{};
  for (const auto& queue : all) queue->wait_ended(queue->now().ended, false);
  return failure.status();
}

Queues::~Queues() {
  abandoned.store(true, std::memory_order_release);
  for (const auto& queue : all) queue->stop();
}

bool WorkQueue::is_used() const {
  const DiscreteOptions& options = queues_.options;
  return queue_ != ir::kNetworkQueue || !options.shares_host || options.communicator != nullptr;
}

Status WorkQueue::start() {
  ring_.resize(kCapacity);
  PLIMSOLL_ASSIGN(thread_, Thread::start("the queue " + std::string(ir::name(queue_)), [this] { loop(); }));
  return Ok{};
}

void WorkQueue::stop() {
  if (!thread_.joinable()) return;
  next_free(Item::Kind::kStop);
  publish(0);
  thread_.join();
}

WorkQueue::Item& WorkQueue::next_free(Item::Kind kind) {
  const uint64_t pushed = pushed_.value();
  if (pushed >= kCapacity && done_with_.value() < pushed - kCapacity + 1) {
    waited_for_.raise(now().ended);
    done_with_.wait(pushed - kCapacity + 1);
  }
  Item& item = ring_[pushed % kCapacity];
  item.kind = kind;
  return item;
}

uint64_t WorkQueue::publish(uint64_t num_steps) {
  queued_.fetch_add(num_steps, std::memory_order_acq_rel);
  const uint64_t number = pushed_.value() + 1;
  pushed_.raise(number);
  return number;
}

void WorkQueue::push(const cpu::Work& work, const DevicePool& memory) {
  Item& item = next_free(Item::Kind::kWork);
  item.work = work;
  if (memory.looks_up(work, queue_)) item.work.call = memory.reach(work.call, item.operands);
  publish(1);
}

void WorkQueue::push_wait(Point point) {
  next_free(Item::Kind::kWait).wait = point;
  publish(1);
}

uint64_t WorkQueue::push_list(const CapturedList& list, const Bases& bases) {
  Item& item = next_free(Item::Kind::kList);
  item.list = &list;
  item.bases = bases;
  return publish(list.size());
}

void WorkQueue::wait_ended(uint64_t ended, bool waiter_is_queue) {
  if (queues_.adversary.is_active()) {
    waited_for_.raise(ended);
    if (waiter_is_queue) waited_for_by_queue_.raise(ended);
  }
  ended_.wait(ended);
}

void WorkQueue::wait_list(uint64_t number) {
  wait_ended(now().ended, false);
  done_with_.wait(number);
}

void WorkQueue::loop() {
  for (uint64_t number = 1;; ++number) {
    pushed_.wait(number);
    const Item& item = ring_[(number - 1) % kCapacity];
    switch (item.kind) {
      case Item::Kind::kWork:
        run(item.work);
        break;
      case Item::Kind::kWait:
        wait_for(item.wait);
        break;
      case Item::Kind::kList:
        go_through(*item.list, item.bases);
        break;
      case Item::Kind::kStop:
        return;
    }
    done_with_.raise(number);
  }
}

void WorkQueue::go_through(const CapturedList& list, const Bases& bases) {
  for (const CapturedStep& step : list) {
    if (step.is_wait)
      wait_for({step.wait.queue, bases[static_cast<size_t>(step.wait.queue)] + step.wait.ended});
    else
      run(step.work);
  }
}

void WorkQueue::end_step() { ended_.raise(ended_.value() + 1); }

void WorkQueue::wait_for(Point point) {
  queues_[point.queue].wait_ended(point.ended, true);
  end_step();
}

// What does not run ends as well, so that nobody waits for it; the failure is seen before its end is.
void WorkQueue::run(const cpu::Work& work) {
  ++work_number_;
  const auto stopped = [&] {
    return queues_.failure.occurred() || queues_.abandoned.load(std::memory_order_acquire);
  };
  if (queues_.adversary.is_active() && !stopped()) hold();
  const double start = logs_ ? now_seconds() : 0;
  if (!stopped())
    if (Status status = caught([&] { return run_now(work); }); !status)
      queues_.failure.report(std::move(status).error());
  if (logs_)
    log_.push_back({work.call.op, queue_, work.kind == cpu::Work::Kind::kCopy, work.bytes, start,
                    now_seconds() - start});
  end_step();
}

void WorkQueue::hold() {
  const Treatment treatment = queues_.adversary.treat(queue_, work_number_);
  const uint64_t step = ended_.value() + 1;
  if (treatment.starved) waited_for_by_queue_.wait_until(step, Clock::now() + kMostStarved);
  if (treatment.held) waited_for_.wait_until(step, Clock::now() + kMostHeld);
  if (treatment.pause.count() > 0) std::this_thread::sleep_for(treatment.pause);
}

Status WorkQueue::run_now(const cpu::Work& work) {
  const auto& fault = queues_.options.fault;
  const bool breaks = fault && fault->queue == queue_ && fault->number == work_number_;
  const bool is_copy = work.kind == cpu::Work::Kind::kCopy;
  if (!breaks || fault->flips) PLIMSOLL_TRY(is_copy ? copy(work) : execute(work));
  if (breaks && fault->flips && !work.call.outputs.empty())
    work.call.outputs[0].data[0] ^= std::byte{1};  // of an f32 the least
  if (!breaks || fault->flips) return Ok{};
  if (is_copy) PLIMSOLL_TRY(copy(part_of(work, 0, work.bytes / 2)));
  return injected(work, queue_, work_number_);
}

Status WorkQueue::copy(const cpu::Work& work) {
  const auto begin = Clock::now();
  const Pieces pieces = queues_.adversary.cut(queue_, work_number_, work.bytes);
  for (size_t i = 0; i < pieces.count; ++i) {
    const size_t piece = pieces.order[i];
    if (pieces.pauses[i].count() > 0) std::this_thread::sleep_for(pieces.pauses[i]);
    if (pieces.count > 1) std::this_thread::yield();
    PLIMSOLL_TRY(execute(part_of(work, pieces.cuts[piece], pieces.cuts[piece + 1])));
  }
  const bool crosses =
      (work.destination.space == ir::MemorySpace::kDevice) != (work.source.space == ir::MemorySpace::kDevice);
  if (const double rate = queues_.options.copy_bandwidth; rate > 0 && crosses) {
    const std::chrono::duration<double> least(static_cast<double>(work.bytes) / rate);
    sleep_until_exactly(begin + std::chrono::ceil<Clock::duration>(least));
  }
  return Ok{};
}

Status WorkQueue::execute(const cpu::Work& work) {
  if (queue_ != ir::Queue::kCompute) return cpu::run(work, &own_pool_);
  const std::lock_guard turn(queues_.pool_turn);
  return cpu::run(work, &queues_.pool);
}

}  // namespace plimsoll::discrete
