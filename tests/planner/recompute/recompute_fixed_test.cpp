#include "planner/recompute/recompute_fixed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plimsoll::planner {
namespace {

using testing::ElementsAre;

RecomputeChain chain_of(int num_blocks) {
  RecomputeChain chain;
  for (int i = 0; i < num_blocks; ++i) {
    const std::string name = "layers." + std::to_string(i);
    chain.blocks.push_back({.name = name,
                            .options = {{{name + ".mlp"}, 30, 1}, {{name}, 50, 3}},
                            .saved_bytes = 50,
                            .seconds = 3,
                            .input_bytes = 10,
                            .tail_seconds = 2});
  }
  return chain;
}

TEST(FixedChoices, AreOptionsOfEveryBlockEveryNthAndRuns) {
  const auto all = fixed_choices(chain_of(5));
  ASSERT_EQ(all.size(), 2U + 4U + 4U);  // options, every 2nd to 5th, 1 to 4 runs
  double last = 0;
  std::vector<std::vector<std::string>> layers;
  for (const FixedChoice& fixed : all) {
    EXPECT_GE(fixed.choice.seconds, last) << "the least seconds first";
    last = fixed.choice.seconds;
    layers.push_back(fixed.choice.layers);
    if (fixed.choice.layers == std::vector<std::string>{"layers.0..layers.2", "layers.3..layers.4"}) {
      EXPECT_EQ(fixed.saved_bytes, 5 * 50 + 3 * 10);
      EXPECT_DOUBLE_EQ(fixed.choice.seconds, 5 * 3 + 3 * 2);
    }
  }
  EXPECT_THAT(layers, testing::Contains(ElementsAre("layers.1", "layers.3")));
  EXPECT_THAT(layers, testing::Contains(ElementsAre("layers.0..layers.2", "layers.3..layers.4")));
  EXPECT_THAT(layers, testing::Contains(ElementsAre("layers.0..layers.4")));
  EXPECT_THAT(layers.front(), ElementsAre("layers.2")) << "every third of five is one block";
}

TEST(FixedChoices, AreNoneWithoutBlocks) { EXPECT_TRUE(fixed_choices({}).empty()); }

}  // namespace
}  // namespace plimsoll::planner
