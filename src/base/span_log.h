// A log of named time spans: the host's part of a trace. While nobody asks, a span costs the
// reading of a flag.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace plimsoll {

/// Whose work a span is: the thread of the steps, a loader's, the one that writes checkpoints.
enum class SpanLane : uint8_t { kStep, kLoader, kCheckpoint };

struct Span {
  const char* name = "";
  SpanLane lane = SpanLane::kStep;
  int thread = 0;             ///< of the lane
  double start = 0, end = 0;  ///< by now_seconds
};

/// One for the process, off at first. From any thread.
class SpanLog {
 public:
  static void start();
  /// Spans that are open are lost.
  static void stop();
  [[nodiscard]] static bool is_on() { return on_.load(std::memory_order_relaxed); }
  static void add(const Span& span);
  /// Those that have ended since it was last asked, in the order of their ends.
  static std::vector<Span> take();

 private:
  static std::atomic<bool> on_;
};

/// From here to the end of the scope. `name` is a literal.
class ScopedSpan {
 public:
  ScopedSpan(SpanLane lane, const char* name, int thread = 0);
  ~ScopedSpan();
  ScopedSpan(const ScopedSpan&) = delete;
  ScopedSpan& operator=(const ScopedSpan&) = delete;

 private:
  Span span_;
  bool on_;
};

}  // namespace plimsoll
