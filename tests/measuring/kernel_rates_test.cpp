// Whatever a busy machine gives: that each rate is there and of its kind, not how large it is.
#include "measuring/kernel_rates.h"

#include <gtest/gtest.h>

#include "base/process.h"

namespace plimsoll::measuring {
namespace {

const Shown kQuiet = [](double, const std::string&) {};

KernelPlan small_plan() {
  const ir::TensorType x{ir::DType::kF32, {1, 32, 64}}, w{ir::DType::kF32, {48, 64}};
  return {.groups = {{"products", {{"linear", {x, w}, {{"transposed", false}}}}},
                     {"sweeps", {{"add", {x, x}, {}}}}},
          .seconds_per_op = 1e-4,
          .spread_bytes = 1 << 16,
          .memory_elements = 1 << 12};
}

TEST(KernelRates, AreAProfileThatPlansCanGoBy) {
  planner::MachineProfile p = measure_kernels(small_plan(), kQuiet);
  p.rates = "measured";
  ASSERT_EQ(p.points.size(), 2u);
  EXPECT_EQ(p.points[0].kind, "linear");
  EXPECT_EQ(p.points[0].extents, (std::array<int64_t, 3>{32, 48, 64}));
  EXPECT_EQ(p.product_flops[0], p.points[0].rate) << "the largest product's";
  EXPECT_EQ(p.threads, num_available_cpus());
  EXPECT_LE(p.memory_bandwidth, p.cache_bandwidth);
  const auto back = planner::parse_profile(planner::profile_json(p));
  EXPECT_TRUE(back) << back.error().message();
}

TEST(KernelRates, SeveralRoundsMakeOnePointOfEachSample) {
  KernelPlan plan = small_plan();
  plan.rounds = 3;
  plan.seconds_for_rounds = 1e9;
  EXPECT_EQ(measure_kernels(plan, kQuiet).points.size(), 2u);
}

TEST(KernelRates, RoundsBehindTheFirstEndWithTheirTime) {
  KernelPlan plan = small_plan();
  plan.rounds = 1000;
  plan.seconds_for_rounds = 0;
  EXPECT_EQ(measure_kernels(plan, kQuiet).points.size(), 2u);
}

TEST(KernelRates, WhatTimeIsTooShortForKeepsTheBuiltInRates) {
  KernelPlan plan = small_plan();
  plan.most_seconds = 0;
  planner::MachineProfile p = measure_kernels(plan, kQuiet);
  EXPECT_TRUE(p.points.empty());
  EXPECT_GT(p.product_flops[0], 0);
  EXPECT_TRUE(planner::parse_profile(planner::profile_json(p)));
}

}  // namespace
}  // namespace plimsoll::measuring
