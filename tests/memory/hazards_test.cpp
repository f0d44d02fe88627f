// The checker against an oracle that tries every order there is, and against programs with one fault each.
#include "memory/hazards.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "queue_simulator.h"
#include "sanitizer.h"

namespace plimsoll::memory {
namespace {

using fixtures::CellRead;
using fixtures::QueueSimulator;
using fixtures::SimulatedProgram;
using fixtures::SimulatedStep;
using Kind = Hazard::Kind;

QueueStep record(int32_t queue, int32_t event) { return {QueueStep::Kind::kRecord, queue, event, {}, {}}; }
QueueStep wait(int32_t queue, int32_t event) { return {QueueStep::Kind::kWait, queue, event, {}, {}}; }
QueueStep work(int32_t queue, std::vector<PoolRead> reads, std::vector<PoolWrite> writes) {
  return {QueueStep::Kind::kWork, queue, -1, std::move(reads), std::move(writes)};
}

std::string check(const QueueProgram& program) {
  const auto hazard = find_hazard(program);
  if (!hazard) return "sound";
  return describe(*hazard, {.step = [&](int32_t s) { return "step " + std::to_string(s); },
                            .pool = [](int32_t p) { return "pool " + std::to_string(p); }});
}

/// A value goes out on queue 1 and comes back on queue 2 while queue 0 takes its bytes for another.
QueueProgram round_trip() {
  const PoolRange here{0, 0, 64}, there{1, 0, 64}, back{0, 64, 128};
  return {.num_queues = 3,
          .num_events = 3,
          .pool_bytes = {128, 64},
          .steps = {
              work(0, {}, {{here}}),                         // 0: makes it
              record(0, 0),                                  // 1
              wait(1, 0),                                    // 2
              work(1, {{here, 0}}, {{there}}),               // 3: out
              record(1, 1),                                  // 4
              wait(2, 1),                                    // 5
              work(2, {{there, 3}}, {{back}}),               // 6: back
              record(2, 2),                                  // 7
              wait(0, 2),                                    // 8
              work(0, {}, {{here}}),                         // 9: takes its bytes
              work(0, {{back, 6}, {here, 9}}, {{here, 1}}),  // 10: in place of the second
          }};
}

TEST(Hazards, ARoundTripBehindItsEventsIsSound) { EXPECT_EQ(check(round_trip()), "sound"); }

TEST(Hazards, NoEventOfARoundTripCanBeLeftOut) {
  const std::vector<std::pair<size_t, std::string>> faults = {
      {1, "step 1 is issued before its event is recorded"},
      {2, "step 2 reads bytes 0..64 of pool 0, which step 0 may not have written yet"},
      {4, "step 4 is issued before its event is recorded"},
      {5, "step 5 reads bytes 0..64 of pool 1, which step 3 may not have written yet"},
      {7, "step 7 is issued before its event is recorded"},
      {8, "step 8 overwrites bytes 0..64 of pool 0, which step 3 may still be reading"}};
  for (const auto& [left_out, what] : faults) {
    QueueProgram program = round_trip();
    program.steps.erase(program.steps.begin() + static_cast<int64_t>(left_out));
    for (QueueStep& step : program.steps)
      for (PoolRead& read : step.reads) read.writer -= read.writer > static_cast<int32_t>(left_out) ? 1 : 0;
    EXPECT_EQ(check(program), what);
  }
}

TEST(Hazards, NamesEachFault) {
  const auto broken = [](const std::function<void(QueueProgram&)>& change) {
    QueueProgram program = round_trip();
    change(program);
    return check(program);
  };
  EXPECT_EQ(broken([](auto& p) { p.steps[3].queue = 3; }), "step 3 is issued on a queue that does not exist");
  EXPECT_EQ(broken([](auto& p) { p.steps[2].event = 3; }), "step 2 names an event that does not exist");
  EXPECT_EQ(broken([](auto& p) { p.steps[4].event = 0; }), "step 4 records an event a second time");
  EXPECT_EQ(broken([](auto& p) { p.pool_bytes[1] = 63; }),
            "step 3 touches bytes 0..64 of pool 1, which has not as many");
  EXPECT_EQ(
      broken([](auto& p) { p.steps[6].reads[0].writer = kBeforeProgram; }),
      "step 6 reads bytes 0..64 of pool 1 as they were before the program, where step 3 wrote them last");
  EXPECT_EQ(broken([](auto& p) {
              p.steps[3].writes[0].bytes = {1, 0, 32};
            }),
            "step 6 reads bytes 32..64 of pool 1 as step 3 leaves them, where nothing has written them yet");
  EXPECT_EQ(broken([](auto& p) { p.steps[10].reads[0].writer = 9; }),
            "step 10 reads bytes 64..128 of pool 0 as step 9 leaves them, where step 6 wrote them last");
  EXPECT_EQ(broken([](auto& p) { p.steps[10].writes[0].in_place_of = -1; }),
            "step 10 writes bytes 0..64 of pool 0, which hold another operand or result of it");
  EXPECT_EQ(broken([](auto& p) { p.steps[10].writes[0].bytes.end = 60; }),
            "step 10 writes bytes 0..60 of pool 0, which hold another operand or result of it");
  EXPECT_EQ(broken([](auto& p) {
              p.steps[10].writes.push_back({{0, 32, 40}, -1});
            }),
            "step 10 writes bytes 32..40 of pool 0, which hold another operand or result of it");
  EXPECT_EQ(broken([](auto& p) {
              p.steps.push_back(work(1, {}, {{{1, 0, 1}}}));
            }),
            "step 11 overwrites bytes 0..1 of pool 1, which step 6 may still be reading");
  EXPECT_EQ(broken([](auto& p) {
              p.steps.insert(p.steps.begin() + 9, work(1, {}, {{{0, 100, 128}}}));
            }),
            "step 9 overwrites bytes 100..128 of pool 0, which step 6 may still be writing");
  EXPECT_EQ(broken([](auto& p) { p.steps.push_back(work(2, {}, {})); }),
            "the program may end before step 11");
  EXPECT_EQ(broken([](auto& p) { p.results = {{{1, 0, 64}, 3}}; }), "sound");
  EXPECT_EQ(
      broken([](auto& p) {
        p.results = {{{1, 0, 64}, kBeforeProgram}};
      }),
      "step 11 reads bytes 0..64 of pool 1 as they were before the program, where step 3 wrote them last");
}

// ---- against the oracle
// ----------------------------------------------------------------------------------------

using Random = std::mt19937_64;

int64_t pick(Random& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
}

constexpr int32_t kCells = 4;  // of each of two pools

PoolRange random_range(Random& random) {
  const int64_t first = pick(random, 0, kCells - 1);
  return {static_cast<int32_t>(pick(random, 0, 1)), first, pick(random, first + 1, kCells)};
}

/// Who wrote each cell last, step by step.
struct Contents {
  std::vector<int32_t> writers = std::vector<int32_t>(2 * kCells, kBeforeProgram);

  int32_t& at(int32_t pool, int64_t byte) { return writers[static_cast<size_t>(pool * kCells + byte)]; }
  /// The range, or the part of it from its beginning that one step wrote.
  PoolRead read(PoolRange range) {
    const int32_t writer = at(range.pool, range.first);
    int64_t end = range.first + 1;
    while (end < range.end && at(range.pool, end) == writer) ++end;
    return {{range.pool, range.first, end}, writer};
  }
  void write(const PoolRange& range, int32_t step) {
    for (int64_t b = range.first; b < range.end; ++b) at(range.pool, b) = step;
  }
};

QueueStep random_work(Random& random, int32_t queue, Contents& contents, int32_t step) {
  QueueStep result = work(queue, {}, {});
  for (int64_t i = pick(random, 0, 2); i > 0; --i)
    result.reads.push_back(contents.read(random_range(random)));
  if (!result.reads.empty() && random() % 4 == 0)
    result.writes.push_back({result.reads[0].bytes, 0});
  else if (result.reads.empty() || random() % 2 == 0)
    result.writes.push_back({random_range(random), -1});
  for (const PoolWrite& w : result.writes) contents.write(w.bytes, step);
  if (!result.reads.empty() && random() % 40 == 0)
    result.reads[0].writer = static_cast<int32_t>(pick(random, -1, step));
  return result;
}

/// Steps of work behind some of the events that would order them all.
QueueProgram random_queues(uint64_t seed) {
  Random random(seed);
  QueueProgram program{.num_queues = static_cast<int32_t>(pick(random, 1, 3)),
                       .num_events = 0,
                       .pool_bytes = {kCells, kCells},
                       .steps = {},
                       .results = {}};
  const int64_t percent = pick(random, 40, 105);
  Contents contents;
  const auto wait_for_all = [&](int32_t queue) {
    for (int32_t e = 0; e < program.num_events; ++e)
      if (pick(random, 1, 100) <= percent) program.steps.push_back(wait(queue, e));
  };
  for (int64_t i = pick(random, 2, 7); i > 0; --i) {
    const auto queue = static_cast<int32_t>(pick(random, 0, program.num_queues - 1));
    wait_for_all(queue);
    program.steps.push_back(random_work(random, queue, contents, static_cast<int32_t>(program.steps.size())));
    program.steps.push_back(record(queue, program.num_events++));
  }
  wait_for_all(0);
  program.results = {contents.read(random_range(random))};
  return program;
}

fixtures::SimulatedProgram simulated(const QueueProgram& program) {
  fixtures::SimulatedProgram result{
      .num_queues = program.num_queues, .initial = std::vector<int64_t>(2 * kCells, 0), .steps = {}};
  const auto add_reads = [](std::vector<fixtures::CellRead>& to, const PoolRead& read, bool in_place) {
    for (int64_t b = read.bytes.first; b < read.bytes.end; ++b)
      to.push_back({static_cast<int32_t>(read.bytes.pool * kCells + b), read.writer + 1, in_place});
  };
  for (size_t s = 0; s < program.steps.size(); ++s) {
    const QueueStep& from = program.steps[s];
    fixtures::SimulatedStep step{.kind = static_cast<fixtures::SimulatedStep::Kind>(from.kind),
                                 .queue = from.queue,
                                 .event = from.event};
    for (size_t r = 0; r < from.reads.size(); ++r)
      add_reads(step.reads, from.reads[r], r == 0 && !from.writes.empty() && from.writes[0].in_place_of == 0);
    for (const PoolWrite& w : from.writes)
      for (int64_t b = w.bytes.first; b < w.bytes.end; ++b)
        step.writes.push_back({static_cast<int32_t>(w.bytes.pool * kCells + b), static_cast<int64_t>(s) + 1});
    result.steps.push_back(std::move(step));
  }
  for (const PoolRead& r : program.results) add_reads(result.results, r, false);
  return result;
}

TEST(Hazards, AgreesWithEveryOrderOfRandomPrograms) {
  int64_t sound = 0, side_by_side = 0, changed = 0, beside = 0, missed = 0;
  for (uint64_t seed = 0; seed < static_cast<uint64_t>(cases_here(20'000)); ++seed) {
    const QueueProgram program = random_queues(seed);
    const fixtures::QueueSimulator simulator(simulated(program));
    const fixtures::Difference difference = simulator.every_order();
    const bool harmful = difference.changed || difference.beside;
    ASSERT_LT(difference.orders, 1'000'000) << "seed " << seed;
    ASSERT_EQ(find_hazard(program).has_value(), harmful) << "seed " << seed << ": " << check(program);
    sound += !harmful;
    // One by one, each step of work and the end are begun and ended once.
    const auto works = std::count_if(program.steps.begin(), program.steps.end(),
                                     [](const auto& s) { return s.kind == QueueStep::Kind::kWork; });
    side_by_side += !harmful && difference.orders > 2 * (works + 1) + 1;
    changed += difference.changed;
    beside += harmful && !difference.changed;
    missed += difference.changed && !simulator.many_orders(20, seed).changed;
  }
  EXPECT_GT(sound, cases_here(1000));
  EXPECT_GT(side_by_side, cases_here(500));  // queues that do run beside each other
  EXPECT_GT(changed, cases_here(1000));
  EXPECT_EQ(missed, 0);  // the orders that larger programs are tried in find what all orders find
  std::printf(
      "%ld sound (%ld with work side by side), %ld that change a result, %ld that write beside each other\n",
      sound, side_by_side, changed, beside);
}

TEST(Hazards, ProgramsOfEightyLayersTakeMilliseconds) {
  // Each layer: 60 kernels whose storages take turns in 64 slots, one value out and back with slots of its
  // own.
  QueueProgram program{
      .num_queues = 3, .num_events = 0, .pool_bytes = {1 << 20, 1 << 20}, .steps = {}, .results = {}};
  std::vector<int32_t> writers(64, kBeforeProgram);
  Random random(7);
  const auto slot = [](int64_t i) { return PoolRange{0, i * 1024, i * 1024 + 1024}; };
  const auto next = [&] { return static_cast<int32_t>(program.steps.size()); };
  for (int layer = 0; layer < 80; ++layer) {
    for (int i = 0; i < 60; ++i) {
      const int64_t a = pick(random, 0, 63), b = pick(random, 0, 63);
      const int64_t out = (a + 1 + pick(random, 0, 30)) % 64;
      std::vector<PoolRead> reads = {{slot(a), writers[static_cast<size_t>(a)]}};
      if (b != out && b != a) reads.push_back({slot(b), writers[static_cast<size_t>(b)]});
      writers[static_cast<size_t>(out)] = next();
      program.steps.push_back(work(0, std::move(reads), {{slot(out)}}));
    }
    const int32_t made = next() - 1, e = program.num_events;
    const PoolRange source = program.steps.back().writes[0].bytes, host{1, layer * 1024, layer * 1024 + 1024};
    program.steps.push_back(record(0, e));
    program.steps.push_back(wait(1, e));
    program.steps.push_back(work(1, {{source, made}}, {{host}}));
    program.steps.push_back(record(1, e + 1));
    program.steps.push_back(wait(2, e + 1));
    program.steps.push_back(work(2, {{host, made + 3}}, {{{0, 70'000, 71'024}}}));
    program.steps.push_back(record(2, e + 2));
    program.steps.push_back(wait(0, e + 2));
    program.steps.push_back(work(0, {{{0, 70'000, 71'024}, made + 6}}, {{slot(0)}}));
    writers[0] = next() - 1;
    program.num_events += 3;
  }
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(check(program), "sound");
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
  std::printf("%zu steps in %.1f ms\n", program.steps.size(), taken.count());
  EXPECT_LT(taken.count(), 10'000);  // with room for sanitizers and busy machines
}

}  // namespace
}  // namespace plimsoll::memory
