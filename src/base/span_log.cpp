#include "base/span_log.h"

#include <mutex>
#include <utility>

#include "base/process.h"

namespace plimsoll {
namespace {

struct Ended {
  std::mutex mutex;
  std::vector<Span> spans;
};

Ended& ended() {
  static Ended instance;
  return instance;
}

}  // namespace

std::atomic<bool> SpanLog::on_{false};

void SpanLog::start() {
  (void)take();
  on_ = true;
}

void SpanLog::stop() { on_ = false; }

void SpanLog::add(const Span& span) {
  if (!is_on()) return;
  const std::scoped_lock lock(ended().mutex);
  ended().spans.push_back(span);
}

std::vector<Span> SpanLog::take() {
  const std::scoped_lock lock(ended().mutex);
  return std::exchange(ended().spans, {});
}

ScopedSpan::ScopedSpan(SpanLane lane, const char* name, int thread)
    : span_{name, lane, thread}, on_(SpanLog::is_on()) {
  if (on_) span_.start = now_seconds();
}

ScopedSpan::~ScopedSpan() {
  if (!on_) return;
  span_.end = now_seconds();
  SpanLog::add(span_);
}

}  // namespace plimsoll
