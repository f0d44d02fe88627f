// When each piece of a card's work began and ended, by the card's clock: an event before it and one behind
// it.
//
//   outside a capture   event ─ work ─ event                            on its queue, once
//   captured            the same as nodes of the graph: each replay writes the events again
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "backends/cuda/api.h"
#include "runtime/queue_work.h"

namespace plimsoll::cuda {

/// Of a captured graph: what it does, with the events around each piece. Destroyed in the current context.
class CapturedTimes;

/// Calls return 0 or the driver's number; the context is current.
/// Threads: any, but captures, replays and `log` come from one.
class QueueTimer {
 public:
  explicit QueueTimer(const Driver& driver) : driver_(driver) {}
  QueueTimer(const QueueTimer&) = delete;
  QueueTimer& operator=(const QueueTimer&) = delete;
  ~QueueTimer();

  /// Begins, from nothing, or ends. Waits for the stream, with which the host's clock is compared.
  int log(bool on, Handle stream);
  [[nodiscard]] bool is_on() const { return on_; }

  /// Before a piece of work is queued on its stream; `begun` is what `end` is given behind it.
  struct Begun {
    runtime::QueueWork work = {};
    Handle begin = nullptr, end = nullptr;
  };
  int begin(const runtime::QueueWork& work, Handle stream, bool captured, Begun& begun);
  int end(const Begun& begun, Handle stream, bool captured);

  /// Of the capture that ends; null where nothing of it was timed.
  std::shared_ptr<CapturedTimes> take_captured();
  /// Before a replay. Where the last one of that graph was not taken down yet, waits for it on the stream and
  /// does.
  int before_replay(const std::shared_ptr<CapturedTimes>& times, Handle stream);

  /// What was taken down since `log`, queue by queue, each in its order. Call while nothing is queued.
  std::vector<runtime::QueueWork> take();

 private:
  friend class CapturedTimes;
  /// Adds what the events say to done_.
  void collect(const Begun& begun);
  void collect_pending();
  void clear();

  const Driver& driver_;
  bool on_ = false;
  std::mutex turn_;
  Handle origin_ = nullptr;    ///< reached at origin_seconds_ of the host's clock
  double origin_seconds_ = 0;  ///< by now_seconds
  std::vector<Begun> single_, captured_;
  std::vector<std::shared_ptr<CapturedTimes>> pending_;  ///< replayed, and not collected
  std::vector<runtime::QueueWork> done_;
};

}  // namespace plimsoll::cuda
