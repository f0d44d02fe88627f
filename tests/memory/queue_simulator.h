// The oracle of hazards: runs a program on queues with symbolic contents of its cells, in one order after
// another. A step of work is two events, a begin (reads its operands, and from then on its results may lie
// there in part) and an end (its operands were there to the last, its results are there), so that two steps
// can be under way at once. Behind the end the next program begins, which overwrites everything.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <set>
#include <vector>

namespace plimsoll::fixtures {

struct CellRead {
  int32_t cell = 0;
  int64_t content = 0;    ///< that the step means to see
  bool in_place = false;  ///< the step's own result takes its place
};
struct CellWrite {
  int32_t cell = 0;
  int64_t content = 0;
};

struct SimulatedStep {
  enum class Kind : uint8_t { kWork, kRecord, kWait };
  Kind kind = Kind::kWork;
  int32_t queue = 0;
  int32_t event = -1;
  std::vector<CellRead> reads = {};
  std::vector<CellWrite> writes = {};
  std::vector<int32_t> scratch = {};  ///< cells that the step writes and reads back
};

/// Steps in the order of issue. Contents are non-negative.
struct SimulatedProgram {
  int32_t num_queues = 1;
  std::vector<int64_t> initial;  ///< by cell
  std::vector<SimulatedStep> steps;
  std::vector<CellRead> results = {};
};

struct Difference {
  bool changed = false;  ///< a step or the end saw another content than it meant to
  bool beside = false;   ///< two steps were writing one cell at once
  int32_t step = -1;     ///< that saw it first
  int64_t orders = 0;    ///< tried
};

class QueueSimulator {
 public:
  explicit QueueSimulator(SimulatedProgram program) : program_(std::move(program)) {
    SimulatedStep next{.reads = program_.results};
    for (int32_t c = 0; c < static_cast<int32_t>(program_.initial.size()); ++c)
      next.writes.push_back({c, kNext});
    for (CellRead& r : next.reads) r.in_place = true;
    program_.steps.push_back(std::move(next));
    queues_.resize(static_cast<size_t>(program_.num_queues));
    std::vector<int32_t> record_of;
    for (int32_t s = 0; s < static_cast<int32_t>(program_.steps.size()); ++s) {
      const SimulatedStep& step = program_.steps[static_cast<size_t>(s)];
      queues_[static_cast<size_t>(step.queue)].push_back(s);
      waits_for_.push_back(-1);
      if (step.event < 0) continue;
      record_of.resize(std::max(record_of.size(), static_cast<size_t>(step.event) + 1), -1);
      int32_t& record = record_of[static_cast<size_t>(step.event)];
      if (step.kind == SimulatedStep::Kind::kRecord) record = s;
      if (step.kind == SimulatedStep::Kind::kWait) waits_for_.back() = record;  // -1: for nothing
    }
  }

  /// Every order there is, until the first difference. `orders` counts states, each once, up to `limit`.
  Difference every_order(int64_t limit = 1'000'000) const {
    Difference found;
    std::set<uint64_t> seen;
    explore(start(), seen, limit, found);
    return found;
  }

  /// As issued, each queue starved and each run ahead, and `num_random` random ones; until one differs.
  Difference random_orders(int64_t num_random, uint64_t seed) const {
    Difference found;
    run(found, [](const State&, const std::vector<int32_t>& next) { return lowest(next); });
    std::vector<size_t> priority(queues_.size());
    std::iota(priority.begin(), priority.end(), 0);
    do
      run(found, [&](const State&, const std::vector<int32_t>& next) {
        return *std::find_if(priority.begin(), priority.end(), [&](size_t q) { return next[q] >= 0; });
      });
    while (!found.changed && std::next_permutation(priority.begin(), priority.end()));
    for (int64_t i = 0; i < num_random && !found.changed; ++i)
      run_random(found, seed + static_cast<uint64_t>(i));
    return found;
  }

  /// These, and each two steps on two queues that touch a cell held against each other.
  Difference many_orders(int64_t num_random, uint64_t seed) const {
    Difference found = random_orders(num_random, seed);
    for (const auto& [first, second] : conflicts()) {
      if (!found.changed) run_held(found, first, false, second);
      if (!found.changed) run_held(found, first, true, second);
      if (!found.changed) run_held(found, second, true, first);
    }
    return found;
  }

 private:
  static constexpr int64_t kNext = -1;
  using Kind = SimulatedStep::Kind;

  struct State {
    std::vector<int64_t> cells;
    std::vector<size_t> next;   ///< by queue: into queues_
    std::vector<bool> begun;    ///< by queue: its next step is under way
    std::vector<bool> is_done;  ///< by step
  };

  static int64_t torn(int32_t step) { return -2 - step; }

  State start() const {
    State s{program_.initial, std::vector<size_t>(queues_.size(), 0),
            std::vector<bool>(queues_.size(), false), std::vector<bool>(program_.steps.size(), false)};
    settle(s);
    return s;
  }

  /// Records and waits happen as soon as they can.
  void settle(State& s) const {
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t q = 0; q < queues_.size(); ++q)
        while (s.next[q] < queues_[q].size()) {
          const int32_t i = queues_[q][s.next[q]];
          if (step(i).kind == Kind::kWork) break;
          const int32_t event = waits_for_[static_cast<size_t>(i)];
          if (event >= 0 && !s.is_done[static_cast<size_t>(event)]) break;
          s.is_done[static_cast<size_t>(i)] = true;
          ++s.next[q];
          moved = true;
        }
    }
  }

  /// By queue: the step of work that can go on, or -1.
  std::vector<int32_t> ready(const State& s) const {
    std::vector<int32_t> next(queues_.size(), -1);
    for (size_t q = 0; q < queues_.size(); ++q)
      if (s.next[q] < queues_[q].size() && step(queues_[q][s.next[q]]).kind == Kind::kWork)
        next[q] = queues_[q][s.next[q]];
    return next;
  }

  void advance(State& s, size_t q, Difference& found) const {
    const int32_t i = queues_[q][s.next[q]];
    const auto differs = [&] {
      found.step = found.changed ? found.step : i;
      found.changed = true;
    };
    if (!s.begun[q]) {
      for (const CellRead& r : step(i).reads)
        if (cell(s, r.cell) != r.content) differs();
      for (const CellWrite& w : step(i).writes) cell(s, w.cell) = torn(i);
      for (const int32_t c : step(i).scratch) cell(s, c) = torn(i);
      s.begun[q] = true;
      return;
    }
    for (const CellRead& r : step(i).reads)
      if (!r.in_place && cell(s, r.cell) != r.content) differs();
    for (const CellWrite& w : step(i).writes) {
      found.beside = found.beside || cell(s, w.cell) != torn(i);
      cell(s, w.cell) = w.content;
    }
    for (const CellWrite& w : step(i).writes)
      if (cell(s, w.cell) != w.content) differs();
    for (const int32_t c : step(i).scratch)
      if (cell(s, c) != torn(i)) differs();
    s.begun[q] = false;
    s.is_done[static_cast<size_t>(i)] = true;
    ++s.next[q];
    settle(s);
  }

  void finish(const State& s, Difference& found) const {
    for (const int64_t c : s.cells) found.changed = found.changed || c != kNext;
  }

  void run(Difference& found,
           const std::function<size_t(const State&, const std::vector<int32_t>&)>& choose) const {
    State s = start();
    ++found.orders;
    while (!found.changed) {
      const std::vector<int32_t> next = ready(s);
      if (lowest(next) == next.size()) return finish(s, found);
      advance(s, choose(s, next), found);
    }
  }

  /// The queue whose step was issued first.
  static size_t lowest(const std::vector<int32_t>& next) {
    size_t best = next.size();
    for (size_t q = 0; q < next.size(); ++q)
      if (next[q] >= 0 && (best == next.size() || next[q] < next[best])) best = q;
    return best;
  }

  void run_random(Difference& found, uint64_t seed) const {
    std::mt19937_64 random(seed);
    std::vector<uint64_t> weights;
    for (size_t q = 0; q < queues_.size(); ++q) weights.push_back(uint64_t{1} << (random() % 6));
    run(found, [&](const State&, const std::vector<int32_t>& next) {
      uint64_t total = 0;
      for (size_t q = 0; q < next.size(); ++q) total += next[q] >= 0 ? weights[q] : 0;
      uint64_t pick = random() % total;
      for (size_t q = 0; q < next.size(); ++q) {
        if (next[q] < 0) continue;
        if (pick < weights[q]) return q;
        pick -= weights[q];
      }
      return size_t{0};
    });
  }

  /// `held` does not begin (or, `begun`, is begun first and does not end) before `until` is done, as long as
  /// anything else can go on; then it goes on at once.
  void run_held(Difference& found, int32_t held, bool begun, int32_t until) const {
    const auto qh = static_cast<size_t>(step(held).queue), qu = static_cast<size_t>(step(until).queue);
    run(found, [&](const State& s, const std::vector<int32_t>& next) {
      const bool is_next = next[qh] == held;
      const bool is_over = s.is_done[static_cast<size_t>(until)];
      if (is_next && (is_over || s.begun[qh] != begun)) return qh;
      std::vector<int32_t> free = next;
      if (is_next) free[qh] = -1;
      if (!is_next && begun && !s.is_done[static_cast<size_t>(held)]) {
        if (next[qu] == until) free[qu] = -1;
        if (next[qh] >= 0) return qh;
      }
      if (free[qu] >= 0 && free[qu] <= until) return qu;
      const size_t first = lowest(free);
      return first < free.size() ? first : lowest(next);
    });
  }

  /// Each write and the reads since, each of these and the next write: pairs on two queues, as issued.
  std::set<std::pair<int32_t, int32_t>> conflicts() const {
    std::vector<int32_t> writer(program_.initial.size(), -1);
    std::vector<std::vector<int32_t>> readers(program_.initial.size());
    std::set<std::pair<int32_t, int32_t>> pairs;
    const auto add = [&](int32_t a, int32_t b) {
      if (a >= 0 && step(a).queue != step(b).queue) pairs.emplace(a, b);
    };
    for (int32_t i = 0; i < static_cast<int32_t>(program_.steps.size()); ++i) {
      for (const CellRead& r : step(i).reads) {
        add(writer[static_cast<size_t>(r.cell)], i);
        readers[static_cast<size_t>(r.cell)].push_back(i);
      }
      const auto write = [&](int32_t c) {
        add(writer[static_cast<size_t>(c)], i);
        for (const int32_t r : readers[static_cast<size_t>(c)]) add(r, i);
        readers[static_cast<size_t>(c)].clear();
        writer[static_cast<size_t>(c)] = i;
      };
      for (const CellWrite& w : step(i).writes) write(w.cell);
      for (const int32_t c : step(i).scratch) write(c);
    }
    return pairs;
  }

  static uint64_t hash(const State& s) {
    uint64_t h = 0;
    const auto mix = [&](uint64_t word) { h = ((h ^ word) + (h << 6) + (h >> 2)) * 0xff51afd7ed558ccd; };
    for (size_t q = 0; q < s.next.size(); ++q) mix(2 * s.next[q] + (s.begun[q] ? 1 : 0));
    for (const int64_t c : s.cells) mix(static_cast<uint64_t>(c));
    return h;
  }

  // NOLINTNEXTLINE(misc-no-recursion): as deep as two events a step
  void explore(const State& s, std::set<uint64_t>& seen, int64_t limit, Difference& found) const {
    if (found.changed || found.orders >= limit || !seen.insert(hash(s)).second) return;
    ++found.orders;
    const std::vector<int32_t> next = ready(s);
    if (lowest(next) == next.size()) return finish(s, found);
    for (size_t q = 0; q < next.size(); ++q) {
      if (next[q] < 0) continue;
      State after = s;
      advance(after, q, found);
      explore(after, seen, limit, found);
    }
  }

  const SimulatedStep& step(int32_t i) const { return program_.steps[static_cast<size_t>(i)]; }
  static int64_t& cell(State& s, int32_t c) { return s.cells[static_cast<size_t>(c)]; }

  SimulatedProgram program_;
  std::vector<std::vector<int32_t>> queues_;  // steps, by queue
  std::vector<int32_t> waits_for_;            // by step: the record that a wait waits for
};

}  // namespace plimsoll::fixtures
