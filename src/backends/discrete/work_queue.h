// One queue of a discrete device: a ring of what was queued, and the thread that runs it.
//
//   host ──push──► [ work | wait | captured list | … ] ──► thread ──► ended: how many steps have ended
//
// A piece of work or a wait is a step; steps are numbered within their queue, from 1 on, when they are
// queued. All that orders queues is "so many steps of that queue have ended": an event is such a point, and
// so is what a wait waits for. A point is fixed when the wait is queued and lies before it, so queues cannot
// wait in a circle, and a list that is replayed again before it has ended has points of its own each time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "backends/cpu/work.h"
#include "backends/discrete/adversary.h"
#include "backends/discrete/counter.h"
#include "backends/discrete/device_memory.h"
#include "backends/discrete/failure.h"
#include "backends/discrete/options.h"
#include "base/thread.h"
#include "ir/network_queue.h"
#include "runtime/queue_work.h"

namespace plimsoll::discrete {

/// The first `ended` steps of a queue have ended.
struct Point {
  ir::Queue queue = ir::Queue::kCompute;
  uint64_t ended = 0;
};

/// What was captured on one queue, in order: work, and waits for points counted from the capture's begin.
struct CapturedStep {
  bool is_wait = false;
  Point wait = {};
  cpu::Work work = {};
};
using CapturedList = std::vector<CapturedStep>;

/// Where each queue stood when a replay began.
using Bases = std::array<uint64_t, ir::kNumAllQueues>;

struct Queues;

/// Threads: one at a time pushes; any may ask and wait.
class WorkQueue {
 public:
  /// `num_threads` compute for it alone, of which its own is one.
  WorkQueue(ir::Queue queue, Queues& queues, int num_threads)
      : queue_(queue), queues_(queues), own_pool_(num_threads) {}

  /// Whether anything is ever pushed: a CPU that is alone has nothing for other ranks.
  [[nodiscard]] bool is_used() const;
  /// Begins to run what is pushed. Errors: kIo where the system gives no thread.
  Status start();
  /// Ends the thread behind what was pushed, if it has begun.
  void stop();

  // Pushing waits while the ring is full, and allocates nothing beyond what is said.

  /// With checks, a launch's operands are looked up in `memory` and copied; the ring keeps the room for them.
  void push(const cpu::Work& work, const DevicePool& memory);
  /// What is pushed from here on begins after that point.
  void push_wait(Point point);
  /// The list lives until wait_list of the number that is returned.
  uint64_t push_list(const CapturedList& list, const Bases& bases);

  /// All that is queued so far.
  [[nodiscard]] Point now() const { return {queue_, queued_.load(std::memory_order_acquire)}; }
  /// Until so many steps have ended; what was held back because nobody waited is held back no more.
  void wait_ended(uint64_t ended, bool waiter_is_queue);
  /// Until the queue has gone through that list.
  void wait_list(uint64_t number);

  // Of what the queue runs, with its times; while nothing is queued.
  void log(bool on) { logs_ = on, log_.clear(); }
  [[nodiscard]] std::vector<runtime::QueueWork> take_log() { return std::exchange(log_, {}); }

 private:
  struct Item {
    enum class Kind : uint8_t { kWork, kWait, kList, kStop } kind = Kind::kWork;
    Point wait;
    cpu::Work work;
    std::vector<runtime::TensorRef> operands;
    const CapturedList* list = nullptr;
    Bases bases{};
  };
  /// More than the host queues in the time that it takes to wake the thread.
  static constexpr uint64_t kCapacity = 256;

  Item& next_free(Item::Kind kind);
  uint64_t publish(uint64_t num_steps);

  // On the queue's thread.
  void loop();
  void go_through(const CapturedList& list, const Bases& bases);
  void wait_for(Point point);
  void run(const cpu::Work& work);
  [[nodiscard]] Status run_now(const cpu::Work& work);
  [[nodiscard]] Status copy(const cpu::Work& work);
  [[nodiscard]] Status execute(const cpu::Work& work);
  void hold();
  void end_step();

  const ir::Queue queue_;
  Queues& queues_;
  std::vector<Item> ring_;           ///< of kCapacity, once it has begun
  Counter pushed_;                   ///< items
  Counter done_with_;                ///< items whose place in the ring is free again
  std::atomic<uint64_t> queued_{0};  ///< steps
  Counter ended_;                    ///< steps
  Counter waited_for_;               ///< steps that anyone waits for
  Counter waited_for_by_queue_;      ///< steps that another queue waits for
  uint64_t work_number_ = 0;         ///< of the work that runs: the adversary and faults count work alone
  bool logs_ = false;                ///< read by the thread behind what is pushed later
  std::vector<runtime::QueueWork> log_;
  cpu::ThreadPool own_pool_;  ///< for all but kCompute
  Thread thread_;
};

/// The queues of a device and what they share.
struct Queues {
  explicit Queues(const DiscreteOptions& o);
  Status start();
  /// What has not begun does not run any more; what has begun ends.
  ~Queues();
  [[nodiscard]] WorkQueue& operator[](ir::Queue queue) { return *all[static_cast<size_t>(queue)]; }
  /// For the host: the error, or success. Behind an error nothing runs any more: what other queues were in
  /// the midst of has ended, so that whoever leaves with it may free what the work was given.
  [[nodiscard]] Status status();

  const DiscreteOptions options;
  const Adversary adversary;
  Failure failure;
  std::atomic<bool> abandoned{false};  ///< the device goes: nothing of what is queued begins
  cpu::ThreadPool pool;                ///< of kCompute, and of the host where it allocates, in turns
  std::mutex pool_turn;
  std::array<std::unique_ptr<WorkQueue>, ir::kNumAllQueues> all;
};

}  // namespace plimsoll::discrete
