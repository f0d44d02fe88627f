#include "planner/programs/loss_chunks.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "backends/cpu/cpu_target.h"
#include "models/selection.h"
#include "planner/cost/known_profiles.h"
#include "planner/preset.h"
#include "planner/programs/largest_backward.h"
#include "planner/programs/step_programs.h"

namespace plimsoll::planner {
namespace {

TrainingPrograms programs(const models::Model& model, const runtime::Target& target, int64_t tokens,
                          int64_t chunk) {
  const std::unique_ptr<tasks::Task> task = tasks::make_causal_lm(/*documents=*/false);
  StepOptions o;
  o.task = task.get();
  o.micro_batch_size = 1;
  o.sequence_length = tokens;
  o.chunk_tokens = chunk;
  auto built = build_training_programs(model, o, target);
  EXPECT_TRUE(built.ok());
  return std::move(*built);
}

/// What is said of smaller chunks is what a plan with them holds.
TEST(LossChunks, AreWhatAPlanWithThemTakes) {
  const cpu::CpuTarget target(2);
  const auto model = preset("smollm-135m");
  const TrainingPrograms large = programs(*model, target, 512, 0);
  const passes::Program* program = largest_backward(large.session);
  ASSERT_NE(program, nullptr);
  EXPECT_EQ(chunk_tokens_of(*program), 512);
  const auto chunks = smaller_chunks(*program, target);
  ASSERT_EQ(chunks.size(), 1U);
  EXPECT_EQ(chunks[0].tokens, 256);
  const TrainingPrograms small = programs(*model, target, 512, 256);
  const passes::Program* less = largest_backward(small.session);
  EXPECT_EQ(chunk_tokens_of(*less), 256);
  EXPECT_TRUE(smaller_chunks(*less, target).empty()) << "a granule is the least";
  const auto loss = [](const passes::Program& p) { return alive_bytes(p)[place_of_loss(p.graph)]; };
  EXPECT_EQ(loss(*program) - chunks[0].saved_bytes, loss(*less));
  const auto predicted = static_cast<double>(most_alive(*program, chunks[0]));
  EXPECT_NEAR(static_cast<double>(most_alive(*less, {})), predicted, 0.01 * predicted)
      << "ops may be ordered otherwise";
  EXPECT_LT(less->plan.device().arena_bytes, program->plan.device().arena_bytes);
  const CostModel costs(generic_cpu(target.instruction_set()), target.num_threads());
  const double seconds = large.cost.seconds.total();
  EXPECT_NEAR(seconds_more(*program, chunks[0], costs), small.cost.seconds.total() - seconds, 1e-9 * seconds);
}

/// Where the head is frozen no sum over tokens holds them to granules: adapters, and evaluation.
TEST(LossChunks, AreSmallerWhereTheHeadIsFrozen) {
  const cpu::CpuTarget target(2);
  const auto model = preset("smollm-135m");
  ASSERT_TRUE(models::select(*model, {.freeze = {"model.embed_tokens.weight"}}));
  const TrainingPrograms all = programs(*model, target, 512, 0);
  const auto chunks = smaller_chunks(*largest_backward(all.session), target);
  ASSERT_EQ(chunks.size(), 3U);
  EXPECT_EQ(chunks.back().tokens, 64);
  EXPECT_GT(chunks.back().saved_bytes, (512 - 64) * 49'152 * 4 / 2);
}

TEST(LossChunks, AreNoneOfAProgramWithoutALoss) {
  const cpu::CpuTarget target(1);
  const TrainingPrograms all = programs(*preset("smollm-135m"), target, 64, 0);
  const auto init = std::ranges::find_if(all.session.programs,
                                         [](const passes::Program& p) { return p.graph.name == "init"; });
  ASSERT_NE(init, all.session.programs.end());
  EXPECT_EQ(chunk_tokens_of(*init), 0);
  EXPECT_TRUE(smaller_chunks(*init, target).empty());
}

}  // namespace
}  // namespace plimsoll::planner
