// A snapshot read back, and what it shows held against the plan.
#include "planner/report/memory_snapshot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "io/unpickle.h"
#include "planner/report/report.h"
#include "planner/small_plan.h"

namespace plimsoll::planner {
namespace {

io::Tree snapshot_of(const passes::SessionPlan& session, const std::vector<ProgramRun>& runs) {
  std::string bytes;
  EXPECT_TRUE(write_memory_snapshot(session, runs, [&](std::span<const std::byte> part) -> Status {
    bytes.append(reinterpret_cast<const char*>(part.data()), part.size());
    return Ok{};
  }));
  return io::Unpickler(bytes).read();
}

int64_t field(const io::Tree& entry, const char* key) { return entry.find(key)->integer; }

/// What a trace comes to: bytes in use by address.
struct Replay {
  int64_t live = 0, peak = 0;
  std::map<int64_t, int64_t> blocks;

  void add(const io::Tree& entry) {
    const int64_t address = field(entry, "addr"), size = field(entry, "size");
    const std::string& action = entry.find("action")->text;
    if (action == "alloc") {
      const auto next = blocks.lower_bound(address);
      EXPECT_TRUE(next == blocks.end() || next->first >= address + size);
      EXPECT_TRUE(next == blocks.begin() || std::prev(next)->first + std::prev(next)->second <= address);
      blocks.emplace(address, size);
      live += size;
    } else if (action == "free_completed") {
      EXPECT_EQ(blocks.count(address), 1U);
      EXPECT_EQ(blocks[address], size);
      blocks.erase(address);
      live -= size;
    }
    peak = std::max(peak, live);
  }
};

TEST(MemorySnapshotTest, LiveBytesPeakWhereThePlanDoes) {
  for (const bool accumulate : {false, true}) {
    const TrainingPrograms programs = planned_small({.micro_batch_size = 4, .accumulate = accumulate});
    PlanReport report;
    describe_session(programs.session, report);
    const std::map<std::string, int64_t> classes(report.classes.begin(), report.classes.end());
    const io::Tree snapshot = snapshot_of(programs.session, planned_runs(programs.session));
    Replay replay;
    for (const io::Tree& entry : snapshot.find("device_traces")->items[0].items) replay.add(entry);
    const int64_t peak = report.persistent_bytes + report.arena_bytes;
    EXPECT_LE(replay.peak, peak);
    EXPECT_GE(replay.peak, peak - classes.at("padding") - classes.at("fragmentation"));
    // Nothing but the states is left.
    for (const auto& [address, size] : replay.blocks)
      EXPECT_LT(address, field(snapshot.find("segments")->items[1], "address"));
  }
}

TEST(MemorySnapshotTest, EveryAllocationLiesInASegmentThatBeganBefore) {
  const TrainingPrograms programs = planned_small({});
  const io::Tree snapshot = snapshot_of(programs.session, planned_runs(programs.session));
  std::map<int64_t, int64_t> segments;
  std::set<std::string> categories;
  const std::vector<io::Tree>& trace = snapshot.find("device_traces")->items[0].items;
  for (size_t i = 0; i < trace.size(); ++i) {
    const std::string& action = trace[i].find("action")->text;
    const int64_t address = field(trace[i], "addr");
    if (const io::Tree* category = trace[i].find("category")) categories.insert(category->text);
    ASSERT_FALSE(trace[i].find("frames")->items.empty());
    if (action == "segment_alloc") segments[address] = field(trace[i], "size");
    if (action != "alloc") continue;
    const auto segment = std::prev(segments.upper_bound(address));
    EXPECT_LE(address + field(trace[i], "size"), segment->first + segment->second);
    EXPECT_LT(address, int64_t{1} << 53);
  }
  EXPECT_EQ(categories.count("unknown"), 1U);
  EXPECT_EQ(categories.count("activations"), 1U);
  // At the end the segments are as the trace has left them, and their blocks tile them.
  for (const io::Tree& segment : snapshot.find("segments")->items) {
    int64_t at = field(segment, "address");
    EXPECT_EQ(segments[at], field(segment, "total_size"));
    for (const io::Tree& block : segment.find("blocks")->items) {
      EXPECT_EQ(field(block, "address"), at);
      EXPECT_LE(field(block, "requested_size"), field(block, "size"));
      at += field(block, "size");
    }
    EXPECT_EQ(at, field(segment, "address") + field(segment, "total_size"));
  }
}

TEST(MemorySnapshotTest, FramesNameOpLayerAndProgram) {
  const TrainingPrograms programs = planned_small({});
  const io::Tree snapshot = snapshot_of(programs.session, planned_runs(programs.session));
  bool found = false;
  for (const io::Tree& entry : snapshot.find("device_traces")->items[0].items) {
    const std::vector<io::Tree>& frames = entry.find("frames")->items;
    if (frames[0].find("name")->text != "head_loss" || entry.find("action")->text != "alloc") continue;
    if (frames[2].find("name")->text != "step") continue;
    found = true;
    EXPECT_EQ(frames[0].find("filename")->text, "lm_head");
    EXPECT_EQ(frames[1].find("name")->text, "lm_head");
    EXPECT_EQ(frames[1].find("filename")->text, "step");
  }
  EXPECT_TRUE(found);
}

TEST(MemorySnapshotTest, RunsAreShownAsOftenAsTheyRan) {
  const TrainingPrograms programs = planned_small({});
  const passes::SessionPlan& session = programs.session;
  const int step = session.find_program({passes::ProgramRole::kStep});
  const auto entries = [&](const std::vector<ProgramRun>& runs) {
    return static_cast<int64_t>(snapshot_of(session, runs).find("device_traces")->items[0].items.size());
  };
  const int64_t none = entries({}), each = trace_entries(session)[static_cast<size_t>(step)];
  EXPECT_EQ(entries({{step, 5}, {step, 9}}), none + 2 * each);
  const io::Tree snapshot = snapshot_of(session, {{step, 5}, {step, 9}});
  EXPECT_EQ(field(snapshot.find("device_traces")->items[0].items.back(), "time_us"), 9);
  EXPECT_EQ(session.programs[static_cast<size_t>(planned_runs(session)[0].program)].graph.name, "init");
}

}  // namespace
}  // namespace plimsoll::planner
