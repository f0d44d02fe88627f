#include "backends/cuda/queue_timer.h"

#include <algorithm>
#include <utility>

#include "base/process.h"

namespace plimsoll::cuda {

class CapturedTimes {
 public:
  CapturedTimes(const Driver& driver, std::vector<QueueTimer::Begun> all)
      : work(std::move(all)), driver_(driver) {}
  CapturedTimes(const CapturedTimes&) = delete;
  CapturedTimes& operator=(const CapturedTimes&) = delete;
  ~CapturedTimes() {
    for (const QueueTimer::Begun& begun : work)
      for (const Handle event : {begun.begin, begun.end}) driver_.event_destroy(event);
  }
  const std::vector<QueueTimer::Begun> work;

 private:
  const Driver& driver_;
};

QueueTimer::~QueueTimer() { clear(); }

void QueueTimer::clear() {
  for (std::vector<Begun>* list : {&single_, &captured_}) {
    for (const Begun& begun : *list)
      for (const Handle event : {begun.begin, begun.end}) driver_.event_destroy(event);
    list->clear();
  }
  pending_.clear();
  done_.clear();
  if (origin_ != nullptr) driver_.event_destroy(origin_);
  origin_ = nullptr;
}

int QueueTimer::log(bool on, Handle stream) {
  const std::lock_guard lock(turn_);
  clear();
  on_ = on;
  if (!on) return 0;
  int error = driver_.event_create(&origin_, kWithTiming);
  if (error == 0) error = driver_.event_record(origin_, stream);
  if (error == 0) error = driver_.event_synchronize(origin_);
  origin_seconds_ = now_seconds();
  return error;
}

int QueueTimer::begin(const runtime::QueueWork& work, Handle stream, bool captured, Begun& begun) {
  begun.work = work;
  int error = driver_.event_create(&begun.begin, kWithTiming);
  if (error == 0) error = driver_.event_create(&begun.end, kWithTiming);
  if (error == 0) error = driver_.event_record_with(begun.begin, stream, captured ? kRecordExternal : 0);
  const std::lock_guard lock(turn_);
  if (error == 0) {
    (captured ? captured_ : single_).push_back(begun);
  } else {
    for (const Handle event : {begun.begin, begun.end})
      if (event != nullptr) driver_.event_destroy(event);
  }
  return error;
}

int QueueTimer::end(const Begun& begun, Handle stream, bool captured) {
  return driver_.event_record_with(begun.end, stream, captured ? kRecordExternal : 0);
}

std::shared_ptr<CapturedTimes> QueueTimer::take_captured() {
  const std::lock_guard lock(turn_);
  if (captured_.empty()) return nullptr;
  return std::make_shared<CapturedTimes>(driver_, std::exchange(captured_, {}));
}

int QueueTimer::before_replay(const std::shared_ptr<CapturedTimes>& times, Handle stream) {
  const std::lock_guard lock(turn_);
  if (std::ranges::find(pending_, times) != pending_.end()) {
    if (const int error = driver_.stream_synchronize(stream); error != 0) return error;
    collect_pending();
  }
  pending_.push_back(times);
  return 0;
}

/// Work that an error kept from its events has no time, and is left out.
void QueueTimer::collect(const Begun& begun) {
  float from_origin = 0, took = 0;
  if (driver_.event_elapsed(&from_origin, origin_, begun.begin) != 0) return;
  if (driver_.event_elapsed(&took, begun.begin, begun.end) != 0) return;
  runtime::QueueWork& work = done_.emplace_back(begun.work);
  work.start = origin_seconds_ + 1e-3 * double{from_origin};
  work.seconds = 1e-3 * double{took};
}

void QueueTimer::collect_pending() {
  for (const auto& times : pending_)
    for (const Begun& begun : times->work) collect(begun);
  pending_.clear();
}

std::vector<runtime::QueueWork> QueueTimer::take() {
  const std::lock_guard lock(turn_);
  collect_pending();
  for (const Begun& begun : single_) {
    collect(begun);
    for (const Handle event : {begun.begin, begun.end}) driver_.event_destroy(event);
  }
  single_.clear();
  std::ranges::stable_sort(done_, {},
                           [](const runtime::QueueWork& work) { return std::pair(work.queue, work.start); });
  return std::exchange(done_, {});
}

}  // namespace plimsoll::cuda
