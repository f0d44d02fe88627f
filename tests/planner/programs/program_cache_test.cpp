#include "planner/programs/program_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "backends/cpu/cpu_target.h"
#include "ir/printer.h"
#include "planner/programs/step_programs.h"
#include "planner/small_step.h"

namespace plimsoll::planner {
namespace {

BeginningKey key(int64_t micro_batch_size) {
  return {{passes::ProgramRole::kStep}, micro_batch_size, 128, 256};
}

TEST(ProgramCacheTest, KeepsTheLastBeginnings) {
  ProgramCache cache;
  const auto most = static_cast<int64_t>(ProgramCache::kMostBeginnings);
  for (int64_t size = 1; size <= most + 1; ++size) cache.add_beginning({.key = key(size), .graph = {}});
  EXPECT_EQ(cache.num_beginnings(), ProgramCache::kMostBeginnings);
  EXPECT_EQ(cache.find_beginning(key(1)), nullptr) << "the oldest goes";
  ASSERT_NE(cache.find_beginning(key(most + 1)), nullptr);
  EXPECT_EQ(cache.find_beginning(key(most + 1))->key, key(most + 1));
}

TEST(ProgramCacheTest, ABeginningIsFoundByAllThatItDependsOn) {
  ProgramCache cache;
  cache.add_beginning({.key = key(1), .graph = {}});
  BeginningKey other = key(1);
  other.id.bucket = 64;
  EXPECT_EQ(cache.find_beginning(other), nullptr);
  other = key(1);
  other.chunk_tokens = 128;
  EXPECT_EQ(cache.find_beginning(other), nullptr);
}

TEST(ProgramCacheTest, BeginningsWithAnOrderDropNoOthers) {
  ProgramCache cache;
  cache.add_beginning({.key = key(1), .graph = {}});
  BeginningKey ordered = key(1);
  ordered.order = OrderKey{};
  EXPECT_EQ(cache.find_beginning(ordered), nullptr);
  for (int64_t count = 0; count <= static_cast<int64_t>(ProgramCache::kMostBeginnings); ++count) {
    ordered.order->recompute.count = count;
    cache.add_beginning({.key = ordered, .graph = {}});
    EXPECT_NE(cache.find_beginning(ordered), nullptr);
  }
  EXPECT_EQ(cache.num_ordered(), ProgramCache::kMostBeginnings);
  EXPECT_NE(cache.find_beginning(key(1)), nullptr);
  ordered.order->recompute.count = 0;
  EXPECT_EQ(cache.find_beginning(ordered), nullptr) << "the oldest goes";
}

TEST(ProgramCacheTest, HasTheUpdateOfTheLastGradientsAndOffload) {
  ProgramCache cache;
  const std::vector<GradientStates> gradients = {{"w", {"grad.w"}}};
  passes::OffloadOptions offloaded;
  offloaded.spaces.fill(ir::MemorySpace::kHostPinned);
  const UpdateKey key{.gradients = gradients};
  EXPECT_EQ(cache.find_update(key), nullptr);
  cache.set_update(key, {.id = {passes::ProgramRole::kUpdate}, .graph = {}, .binding = {}});
  EXPECT_NE(cache.find_update(key), nullptr);
  EXPECT_EQ(cache.find_update({}), nullptr);
  EXPECT_EQ(cache.find_update({.gradients = gradients, .offload = offloaded}), nullptr);
  EXPECT_EQ(cache.find_update({.gradients = gradients, .overlaps_ranks = true}), nullptr);
  EXPECT_EQ(cache.find_update({.gradients = gradients, .sums_in_last = true}), nullptr);
  EXPECT_EQ(cache.find_update({.gradients = gradients, .gathers_late = true}), nullptr);
}

/// The programs of an estimate; none where something is offloaded.
std::vector<passes::Program> estimated(const models::Model& model, const StepOptions& o,
                                       const cpu::CpuTarget& target) {
  if (o.pipeline.offload.any()) return {};
  ProgramCache cache;
  auto programs = estimate_training_programs(model, o, target, cache);
  EXPECT_TRUE(programs.ok());
  return std::move(programs->session.programs);
}

void expect_same(const TrainingPrograms& a, const TrainingPrograms& b, int way) {
  ASSERT_EQ(a.session.programs.size(), b.session.programs.size()) << way;
  for (size_t i = 0; i < a.session.programs.size(); ++i) {
    EXPECT_EQ(ir::print(a.session.programs[i].graph), ir::print(b.session.programs[i].graph)) << way;
    EXPECT_EQ(a.session.programs[i].plan.offsets, b.session.programs[i].plan.offsets) << way;
  }
  EXPECT_EQ(a.gradients, b.gradients) << way;
  EXPECT_EQ(a.recomputed, b.recomputed) << way;
  EXPECT_EQ(a.cost.seconds.total(), b.cost.seconds.total()) << way;
  EXPECT_EQ(a.precision.casts.size(), b.precision.casts.size()) << way;
  EXPECT_EQ(a.precision.ops.size(), b.precision.ops.size()) << way;
  EXPECT_EQ(a.session.device().total(), b.session.device().total()) << way;
  ASSERT_EQ(a.gains.size(), b.gains.size()) << way;
  for (size_t i = 0; i < a.gains.size(); ++i) {
    EXPECT_EQ(a.gains[i].bytes, b.gains[i].bytes) << way;
    EXPECT_EQ(a.gains[i].seconds, b.gains[i].seconds) << way;
  }
}

/// Whatever was planned before, and in whatever order: more strategies than the cache keeps, each twice.
TEST(ProgramCacheTest, ACacheOfOtherStrategiesChangesNoProgram) {
  const cpu::CpuTarget target(2);
  const auto model = tiny_llama(3);
  ProgramCache cache;
  size_t most_kept = 0, taken = 0;
  for (int way = 0; way < 24; ++way) {
    StepOptions o = options(way % 4 == 3 ? 2 : 1, way % 3 == 2 ? 48 : 16);
    o.accumulate = way % 4 != 1;
    o.chunk_tokens = way % 6 == 4 ? 32 : 0;
    o.pipeline.offload.spaces.fill(way % 7 == 3 ? ir::MemorySpace::kDisk : ir::MemorySpace::kDevice);
    if (way % 2 == 0) o.pipeline.recompute.kind = passes::RecomputePolicy::Kind::kFull;
    o.optimizer_in_backward = !o.accumulate && way % 8 == 5;
    const bool estimates = way % 5 == 2;
    const auto build = [&](ProgramCache& known, std::vector<passes::Program>&& placed = {}) {
      return estimates ? estimate_training_programs(*model, o, target, known)
                       : build_training_programs(*model, o, target, known, std::move(placed));
    };
    ProgramCache empty;
    const auto alone = estimates ? build(empty) : build_training_programs(*model, o, target);
    const auto beside = build(cache);
    std::vector<passes::Program> placed = estimated(*model, o, target);
    const auto again = build(cache, std::move(placed));
    for (const passes::Program& program : placed)  // NOLINT: which of them were taken
      taken += program.graph.order().empty() ? 1 : 0;
    ASSERT_TRUE(alone.ok() && beside.ok() && again.ok()) << way;
    most_kept = std::max(most_kept, cache.num_beginnings());
    expect_same(*alone, *beside, way);
    expect_same(*alone, *again, way);
    EXPECT_EQ(cache.num_ordered(), 0U) << "one rank has no exchanges to try";
  }
  EXPECT_EQ(most_kept, ProgramCache::kMostBeginnings);
  EXPECT_GT(taken, 5U);
}

/// What ranks exchange, and when, changes nothing of what stands before: the cache has that once.
TEST(ProgramCacheTest, AnOrderThatExchangesShareChangesNoProgram) {
  const cpu::CpuTarget target(2);
  const auto model = tiny_llama(3);
  ProgramCache cache;
  for (int way = 0; way < 12; ++way) {
    StepOptions o = options(1, 16);
    o.accumulate = o.shares_gradients = o.optimizer.shares_parameters = true;
    o.ranks = o.optimizer.ranks = 2;
    o.gathered_blocks = way % 3;
    o.pipeline.overlaps_ranks = way % 2 == 1;
    const int recompute = way / 2 % 3;
    if (recompute == 1) o.pipeline.recompute.kind = passes::RecomputePolicy::Kind::kFull;
    if (recompute == 2) o.pipeline.recompute = {passes::RecomputePolicy::Kind::kLayers, 0, {"layers.1"}};
    o.finds_gains = recompute == 0 && way < 6;
    ProgramCache empty;
    const auto estimated = estimate_training_programs(*model, o, target, empty);
    const auto again = estimate_training_programs(*model, o, target, cache);
    const auto planned = build_training_programs(*model, o, target);
    const auto beside = build_training_programs(*model, o, target, cache);
    ASSERT_TRUE(estimated.ok() && again.ok() && planned.ok() && beside.ok()) << way;
    expect_same(*estimated, *again, way);
    expect_same(*planned, *beside, way);
  }
  EXPECT_EQ(cache.num_ordered(), ProgramCache::kMostBeginnings);
}

TEST(ProgramCacheTest, ExchangesAloneAddNoOrder) {
  const cpu::CpuTarget target(2);
  const auto model = tiny_llama(3);
  ProgramCache cache;
  StepOptions o = options(1, 16);
  o.accumulate = o.shares_gradients = o.optimizer.shares_parameters = true;
  o.ranks = o.optimizer.ranks = 2;
  for (int32_t blocks = 0; blocks < 3; ++blocks) {
    o.gathered_blocks = blocks;
    o.pipeline.overlaps_ranks = blocks == 1;
    ASSERT_TRUE(estimate_training_programs(*model, o, target, cache).ok());
    EXPECT_EQ(cache.num_ordered(), 1U);
  }
  o.pipeline.recompute.kind = passes::RecomputePolicy::Kind::kFull;
  ASSERT_TRUE(estimate_training_programs(*model, o, target, cache).ok());
  EXPECT_EQ(cache.num_ordered(), 2U);
}

}  // namespace
}  // namespace plimsoll::planner
