// One walk in the order of issue. A range of a pool remembers the step that wrote it last and, for each
// queue, the last that has read it since: a queue runs in order, so the others are before that one.
#include "memory/hazards.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/at.h"

namespace plimsoll::memory {
namespace {

using Kind = Hazard::Kind;

/// By queue: how many of its steps of work are behind one.
using Clock = std::array<int32_t, kMaxQueues>;

constexpr int32_t kNobody = -1;

struct Touched {
  int32_t writer = kBeforeProgram;
  int32_t own_reads = 0;  ///< how often the latest reader reads it
  std::array<int32_t, kMaxQueues> readers = [] {
    std::array<int32_t, kMaxQueues> none{};
    none.fill(kNobody);
    return none;
  }();
};

/// The ranges of one pool: each begins at its key and ends where the next begins.
class Ranges {
 public:
  explicit Ranges(int64_t bytes) {
    ranges_.emplace(0, Touched{});
    ranges_.emplace(bytes, Touched{});  // the end
  }
  using Iterator = std::map<int64_t, Touched>::iterator;

  /// Cuts so that a range begins at `byte`.
  Iterator cut(int64_t byte) {
    const auto it = ranges_.lower_bound(byte);
    if (it->first == byte) return it;
    return ranges_.emplace_hint(it, byte, std::prev(it)->second);
  }
  /// The ranges of [first, end) become one.
  void merge(Iterator first, Iterator end, const Touched& touched) {
    first->second = touched;
    ranges_.erase(std::next(first), end);
  }

 private:
  std::map<int64_t, Touched> ranges_;
};

class Walk {
 public:
  explicit Walk(const QueueProgram& program) : program_(program) {
    for (const int64_t bytes : program.pool_bytes) pools_.emplace_back(bytes);
    recorded_.assign(at(program.num_events), std::nullopt);
    sequence_.assign(program.steps.size(), 0);
  }

  std::optional<Hazard> run() {
    for (size_t s = 0; s < program_.steps.size(); ++s)
      if (auto hazard = visit(static_cast<int32_t>(s))) return hazard;
    return visit_end();
  }

 private:
  const QueueStep& step(int32_t s) const { return program_.steps[at(s)]; }

  std::optional<Hazard> visit(int32_t s) {
    const QueueStep& step = this->step(s);
    if (step.queue < 0 || step.queue >= std::min(program_.num_queues, kMaxQueues))
      return Hazard{Kind::kNoQueue, s};
    Clock& clock = clocks_[at(step.queue)];
    if (step.kind == QueueStep::Kind::kWork) {
      sequence_[at(s)] = clock[at(step.queue)];
      if (auto hazard = work(s, clock)) return hazard;
      ++clock[at(step.queue)];
      last_of_[at(step.queue)] = s;
      return std::nullopt;
    }
    if (step.event < 0 || step.event >= program_.num_events) return Hazard{Kind::kNoEvent, s};
    std::optional<Clock>& event = recorded_[at(step.event)];
    if (step.kind == QueueStep::Kind::kRecord) {
      if (event) return Hazard{Kind::kRecordedTwice, s};
      event = clock;
    } else {
      if (!event) return Hazard{Kind::kWaitsForNothing, s};
      for (size_t q = 0; q < clock.size(); ++q) clock[q] = std::max(clock[q], (*event)[q]);
    }
    return std::nullopt;
  }

  std::optional<Hazard> work(int32_t s, const Clock& clock) {
    for (const PoolRead& read : step(s).reads)
      if (auto hazard = visit_read(s, read, clock)) return hazard;
    for (const PoolWrite& write : step(s).writes)
      if (auto hazard = visit_write(s, write, clock)) return hazard;
    return std::nullopt;
  }

  /// Whether `other` is done before what has that clock begins.
  bool is_done(int32_t other, const Clock& clock) const {
    return other < 0 || sequence_[at(other)] < clock[at(step(other).queue)];
  }

  bool is_outside(const PoolRange& r) const {
    return r.pool < 0 || at(r.pool) >= pools_.size() || r.first < 0 || r.first > r.end ||
           r.end > program_.pool_bytes[at(r.pool)];
  }

  std::optional<Hazard> visit_read(int32_t s, const PoolRead& read, const Clock& clock) {
    if (is_outside(read.bytes)) return Hazard{Kind::kOutside, s, kBeforeProgram, kBeforeProgram, read.bytes};
    if (read.bytes.first == read.bytes.end) return std::nullopt;
    Ranges& ranges = pools_[at(read.bytes.pool)];
    const auto first = ranges.cut(read.bytes.first);
    const auto end = ranges.cut(read.bytes.end);
    const size_t queue = at(s) < program_.steps.size() ? at(step(s).queue) : 0;
    for (auto it = first; it != end; ++it) {
      Touched& range = it->second;
      const PoolRange bytes{read.bytes.pool, it->first, std::next(it)->first};
      if (range.writer != read.writer) return Hazard{Kind::kReadsOther, s, range.writer, read.writer, bytes};
      if (!is_done(range.writer, clock))
        return Hazard{Kind::kReadsEarly, s, range.writer, read.writer, bytes};
      range.own_reads = range.readers[queue] == s ? range.own_reads + 1 : 1;
      range.readers[queue] = s;
    }
    return std::nullopt;
  }

  std::optional<Hazard> visit_write(int32_t s, const PoolWrite& write, const Clock& clock) {
    if (is_outside(write.bytes))
      return Hazard{Kind::kOutside, s, kBeforeProgram, kBeforeProgram, write.bytes};
    if (write.bytes.first == write.bytes.end) return std::nullopt;
    Ranges& ranges = pools_[at(write.bytes.pool)];
    const auto first = ranges.cut(write.bytes.first);
    const auto end = ranges.cut(write.bytes.end);
    for (auto it = first; it != end; ++it) {
      const Touched& range = it->second;
      const PoolRange bytes{write.bytes.pool, it->first, std::next(it)->first};
      if (range.writer == s || !may_overwrite_own(s, write, range))
        return Hazard{Kind::kOwnOperand, s, s, s, bytes};
      if (!is_done(range.writer, clock))
        return Hazard{Kind::kOverwritesWrite, s, range.writer, range.writer, bytes};
      for (const int32_t reader : range.readers)
        if (reader != s && !is_done(reader, clock))
          return Hazard{Kind::kOverwritesRead, s, reader, range.writer, bytes};
    }
    Touched written;
    written.writer = s;
    ranges.merge(first, end, written);
    return std::nullopt;
  }

  /// Whether the range is no operand of the step itself, or is the one that the write takes the place of.
  bool may_overwrite_own(int32_t s, const PoolWrite& write, const Touched& range) const {
    const QueueStep& step = this->step(s);
    if (range.readers[at(step.queue)] != s) return true;
    const bool in_place = write.in_place_of >= 0 && at(write.in_place_of) < step.reads.size();
    return in_place && step.reads[at(write.in_place_of)].bytes == write.bytes && range.own_reads == 1;
  }

  std::optional<Hazard> visit_end() {
    const auto end = static_cast<int32_t>(program_.steps.size());
    for (size_t q = 0; q < at(std::min(program_.num_queues, kMaxQueues)); ++q)
      if (last_of_[q] >= 0 && !is_done(last_of_[q], clocks_[0])) return Hazard{Kind::kNotJoined, last_of_[q]};
    for (const PoolRead& result : program_.results)
      if (auto hazard = visit_read(end, result, clocks_[0])) return hazard;
    return std::nullopt;
  }

  const QueueProgram& program_;
  std::vector<Ranges> pools_;
  std::array<Clock, kMaxQueues> clocks_{};         // by queue: what is behind its next step
  std::vector<std::optional<Clock>> recorded_;     // by event
  std::vector<int32_t> sequence_;                  // by step: its place among the work of its queue
  std::array<int32_t, kMaxQueues> last_of_ = [] {  // by queue: its last step of work
    std::array<int32_t, kMaxQueues> none{};
    none.fill(kNobody);
    return none;
  }();
};

std::string meant_by(const Hazard& h, const HazardNames& names) {
  const std::string meant =
      h.meant == kBeforeProgram ? "they were before the program" : names.step(h.meant) + " leaves them";
  const std::string found =
      h.other == kBeforeProgram ? "nothing has written them yet" : names.step(h.other) + " wrote them last";
  return fmt::format("as {}, where {}", meant, found);
}

}  // namespace

std::optional<Hazard> find_hazard(const QueueProgram& program) { return Walk(program).run(); }

std::string describe(const Hazard& h, const HazardNames& names) {
  const std::string step = names.step(h.step);
  const auto bytes = [&] {
    return fmt::format("bytes {}..{} of {}", h.bytes.first, h.bytes.end, names.pool(h.bytes.pool));
  };
  switch (h.kind) {
    case Kind::kNoQueue:
      return fmt::format("{} is issued on a queue that does not exist", step);
    case Kind::kNoEvent:
      return fmt::format("{} names an event that does not exist", step);
    case Kind::kRecordedTwice:
      return fmt::format("{} records an event a second time", step);
    case Kind::kWaitsForNothing:
      return fmt::format("{} is issued before its event is recorded", step);
    case Kind::kOutside:
      return fmt::format("{} touches {}, which has not as many", step, bytes());
    case Kind::kReadsOther:
      return fmt::format("{} reads {} {}", step, bytes(), meant_by(h, names));
    case Kind::kReadsEarly:
      return fmt::format("{} reads {}, which {} may not have written yet", step, bytes(),
                         names.step(h.other));
    case Kind::kOverwritesRead:
      return fmt::format("{} overwrites {}, which {} may still be reading", step, bytes(),
                         names.step(h.other));
    case Kind::kOverwritesWrite:
      return fmt::format("{} overwrites {}, which {} may still be writing", step, bytes(),
                         names.step(h.other));
    case Kind::kOwnOperand:
      return fmt::format("{} writes {}, which hold another operand or result of it", step, bytes());
    case Kind::kNotJoined:
      return fmt::format("the program may end before {}", step);
  }
  return {};
}

}  // namespace plimsoll::memory
