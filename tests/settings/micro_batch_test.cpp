// What is said where results depend on the size of the micro-batch and it is left open.
#include "settings/micro_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "settings/run_config.h"

namespace plimsoll::settings {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> notes(const std::vector<std::string>& overrides) {
  const auto run = parse_run_config("{model: {preset: gpt2}, data: {train: a.npy}}", "run.yaml", overrides);
  EXPECT_TRUE(run) << run.error().message();
  return run ? run->notes : std::vector<std::string>();
}

std::vector<std::string> fp8_notes(const std::string& recipe, const std::string& more) {
  return notes({"training.precision=fp8", "training.fp8.recipe=" + recipe, more});
}

TEST(MicroBatchNote, AsksForASizeThatNoSearchChooses) {
  for (const std::string recipe : {"current", "nvfp4"}) {
    EXPECT_THAT(fp8_notes(recipe, "data.sequence_length=256"),
                ElementsAre(testing::AllOf(HasSubstr("training.fp8.recipe " + recipe),
                                           HasSubstr("the planner does not choose it"))));
    EXPECT_THAT(fp8_notes(recipe, "training.micro_batch_size=1"), IsEmpty());
  }
  const std::string accumulators = "training.state.accumulators=bf16";
  EXPECT_THAT(notes({accumulators}), ElementsAre(HasSubstr("training.state.accumulators bf16")));
  EXPECT_THAT(notes({accumulators, "training.micro_batch_size=1"}), IsEmpty());
}

TEST(MicroBatchNote, OrderAloneIsNoOtherTraining) {
  const auto by_order = [](const std::vector<std::string>& overrides) {
    return depends_by_order_alone(
        parse_run_config("{model: {preset: gpt2}, data: {train: a.npy}}", "run.yaml", overrides).value());
  };
  const std::string zero2 = "distributed.mode=zero2", two = "distributed.ranks=2";
  EXPECT_TRUE(by_order({zero2, two}));
  EXPECT_FALSE(by_order({zero2}));
  EXPECT_FALSE(by_order({two}));
  EXPECT_FALSE(by_order({"training.precision=fp8", "training.fp8.recipe=current"}));
}

/// Blocks along tokens end with each sequence.
TEST(MicroBatchNote, BlocksOfTokensKnowNoMicroBatch) {
  for (const std::string recipe : {"block", "mxfp8", "delayed"})
    EXPECT_THAT(fp8_notes(recipe, "data.sequence_length=300"), IsEmpty());
}

}  // namespace
}  // namespace plimsoll::settings
