#include "profiling/profile_rows.h"

#include <gtest/gtest.h>

#include "io/json.h"
#include "profiling/profile_testing.h"

namespace plimsoll::profiling {
namespace {

using profile_testing::two_steps;

TEST(ProfileRows, OpsAreMeansAStep) {
  const io::Tree ops = profile_ops(profiling::profile_testing::two_steps());
  ASSERT_EQ(ops.items.size(), 3U);
  EXPECT_EQ(io::to_json(ops.items[0]),
            "{\"op\": \"linear\", \"layer\": \"layers.0\", \"calls\": 1, \"seconds\": 4, \"flops\": 1000, "
            "\"bytes\": 10, \"estimated_seconds\": 0}");
}

TEST(ProfileRows, ByOpLayerOrShape) {
  Profile profile = profiling::profile_testing::two_steps();
  profile.facts[1].layer = profile.facts[0].layer;
  profile.facts[2].op = profile.facts[0].op;
  profile.facts[0].dims = "[[4, 8]]", profile.facts[2].dims = "[[2]]";
  EXPECT_EQ(profile_rows(profile, ProfileBy::kOpAndLayer).size(), 3U);
  const auto by_op = profile_rows(profile, ProfileBy::kOp);
  ASSERT_EQ(by_op.size(), 2U);
  EXPECT_EQ(by_op[0].op, "linear");
  EXPECT_DOUBLE_EQ(by_op[0].seconds, 6);
  EXPECT_DOUBLE_EQ(by_op[0].calls, 2);
  const auto by_layer = profile_rows(profile, ProfileBy::kLayer);
  ASSERT_EQ(by_layer.size(), 2U);
  EXPECT_EQ(by_layer[0].layer, "layers.0");
  EXPECT_DOUBLE_EQ(by_layer[0].seconds, 6);
  const auto by_shape = profile_rows(profile, ProfileBy::kShape);
  ASSERT_EQ(by_shape.size(), 3U);
  EXPECT_EQ(by_shape[0].shape, "[[4, 8]]");
}

TEST(ProfileRows, ImbalanceIsTheLongestThreadOverTheMean) {
  Profile profile = profiling::profile_testing::two_steps();
  for (ProfiledStep& step : profile.steps) step.ops[0].busiest_seconds = 3, step.ops[0].mean_seconds = 2;
  const auto rows = profile_rows(profile, ProfileBy::kOp);
  EXPECT_DOUBLE_EQ(rows[0].imbalance(), 1.5);
  EXPECT_DOUBLE_EQ(rows[1].imbalance(), 0) << "not known";
}

}  // namespace
}  // namespace plimsoll::profiling
