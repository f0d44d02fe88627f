// The ordered list and its runner: order, dumps, timings, ids that survive, and the reckoning that schedule
// relies on.
#include "passes/pipeline.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "ir/parser.h"
#include "ir/printer.h"
#include "passes/memory/bind_storage.h"
#include "passes/memory/live_bytes.h"
#include "passes/memory/memory_plan.h"
#include "training.h"

namespace plimsoll::passes {
namespace {

using fixtures::Tail;
namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(PassList, EachHasANameOfItsOwnAndASentence) {
  std::set<std::string_view> names;
  for (const passes::PassEntry& entry : passes::pass_list()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_TRUE(entry.why.ends_with('.')) << entry.name;
  }
  const auto in_order = [](const auto& a, const auto& b) { return a.phase < b.phase; };
  EXPECT_TRUE(std::is_sorted(passes::pass_list().begin(), passes::pass_list().end(), in_order));
}

TEST(PassList, HoldsEveryPassOfTheFolder) {
  std::set<std::string> listed;
  for (const passes::PassEntry& entry : passes::pass_list()) {
    std::string name(entry.name);
    std::replace(name.begin(), name.end(), '-', '_');
    while (!name.empty() &&
           (std::isdigit(static_cast<unsigned char>(name.back())) != 0 || name.back() == '_'))
      name.pop_back();  // the second run of a pass
    listed.insert(name);
  }
  for (const auto& file : fs::directory_iterator(std::string(PLIMSOLL_TEST_DIR) + "/../src/passes")) {
    if (file.path().extension() != ".h") continue;
    const std::string name = file.path().stem().string();
    if (text_of(file.path()).find("Report> " + name + "(ir::Graph&") == std::string::npos) continue;
    EXPECT_TRUE(listed.contains(name)) << name << " is in no line of pass_list.cpp";
  }
}

TEST(Pipeline, DumpsTheTextAfterEachPass) {
  const fs::path folder = fs::temp_directory_path() / ("plimsoll_dump_" + std::to_string(::getpid()));
  passes::PipelineOptions options;
  options.optimizer_in_backward = options.second_backward = true;
  options.share_casts = options.fuse_bias_grads = true;
  options.dump_dir = folder.string();
  const auto trained = fixtures::train_program(3, options, fixtures::Tail::kGradients);
  ASSERT_TRUE(trained);
  EXPECT_EQ(trained->timings.size(), passes::pass_list().size());
  EXPECT_TRUE(fs::exists(folder / "01-common-subexpressions.ir"));
  std::set<fs::path> dumps;
  for (const auto& entry : fs::directory_iterator(folder)) dumps.insert(entry.path());
  EXPECT_EQ(dumps.size(), passes::pass_list().size());
  const auto parsed = ir::parse(text_of(*dumps.rbegin()), ops::find_op);
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(ir::print(*parsed), ir::print(trained->graph));
  fs::remove_all(folder);
}

TEST(Pipeline, AFolderThatCannotBeWrittenIsAnIoError) {
  passes::PipelineOptions options;
  options.dump_dir = "/proc/plimsoll";
  const auto trained = fixtures::train_program(3, options, fixtures::Tail::kGradients);
  ASSERT_FALSE(trained);
  EXPECT_EQ(trained.error().code, ErrorCode::kIo);
}

TEST(Pipeline, RefusesAChunkOfNoWholeGranule) {
  passes::PipelineOptions options;
  options.chunk_tokens = 100;
  const auto trained = fixtures::train_program(3, options, fixtures::Tail::kGradients);
  ASSERT_FALSE(trained);
  EXPECT_EQ(trained.error().message(), "chunk_tokens 100 is no positive multiple of 64: head and loss");
}

/// Bytes that the binder and the planner find alive at once, no workspaces and no copies of views counted.
passes::PoolPlan bound_plan(const fixtures::Trained& t, const passes::MemoryPlanOptions& options = {}) {
  ir::Graph graph = t.graph;
  passes::BindOptions bind;
  bind.in_place = t.in_place;
  bind.device.accepts_strided = [](std::string_view, size_t) { return true; };
  const auto binding = passes::bind_storage(graph, bind, ops::find_op);
  PLIMSOLL_CHECK(binding.ok());
  return passes::plan_memory(graph, *binding, options).device();
}
int64_t bound_peak(const fixtures::Trained& t) { return bound_plan(t).lower_bound_bytes; }

TEST(MemoryPlan, LooksForNoLowerArenaThanOtherProgramsTakeAnyway) {
  bool ended_early = false;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const auto trained = fixtures::train_program(seed, fixtures::some_passes(0), fixtures::Tail::kGradients);
    ASSERT_TRUE(trained);
    const passes::PoolPlan alone = bound_plan(*trained);
    passes::MemoryPlanOptions options;
    options.taken_bytes[0] = 2 * alone.arena_bytes;
    const passes::PoolPlan beside = bound_plan(*trained, options);
    EXPECT_LE(beside.arena_bytes, options.taken_bytes[0]);
    EXPECT_EQ(beside.lower_bound_bytes, alone.lower_bound_bytes);
    ended_early |= beside.arena_bytes > alone.arena_bytes;
  }
  EXPECT_TRUE(ended_early);
}

TEST(LiveBytes, IsWhatTheBinderAndThePlannerFind) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    fixtures::Dice dice(seed);
    const auto mask = static_cast<uint64_t>(dice.range(0, (1 << 20) - 1));
    const auto options = fixtures::some_passes(mask);
    const auto trained =
        fixtures::train_program(seed, options, static_cast<fixtures::Tail>(dice.range(0, 2)));
    ASSERT_TRUE(trained);
    const auto live =
        passes::live_bytes(trained->graph, trained->graph.order(), {.in_place = options.in_place});
    EXPECT_EQ(live.peak_bytes, bound_peak(*trained)) << "seed " << seed << " mask " << mask;
  }
}

TEST(Schedule, NeverRaisesThePeak) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    passes::PipelineOptions options;
    const auto tail = static_cast<fixtures::Tail>(seed % 3);
    const auto with = fixtures::train_program(seed, options, tail);
    options.schedule = false;
    const auto without = fixtures::train_program(seed, options, tail);
    ASSERT_TRUE(with && without);
    EXPECT_LE(passes::live_bytes(with->graph, with->graph.order(), {}).peak_bytes,
              passes::live_bytes(without->graph, without->graph.order(), {}).peak_bytes)
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace plimsoll::passes
