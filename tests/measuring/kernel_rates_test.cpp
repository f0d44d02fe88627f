// Whatever a busy machine gives: that each rate is there and of its kind, not how large it is.
#include "measuring/kernel_rates.h"

#include <gtest/gtest.h>

#include "base/process.h"
#include "devices/devices.h"
#include "planner/cost/known_profiles.h"

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

/// Its cache is no larger than what the fake card's threads add in a moment.
planner::MachineProfile small_card() {
  planner::MachineProfile card = *planner::find_card("h100");
  card.cache_bytes = 1 << 16;
  return card;
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

/// The fake card's clock is a function of the work: what is measured by it is the same each time.
TEST(KernelRates, OfACardAreByItsOwnClock) {
  ASSERT_TRUE(devices::cuda_card(0)) << "ctest runs this with a fake card";
  const auto device = devices::make_device({.kind = devices::DeviceKind::kCuda});
  ASSERT_TRUE(device) << device.error().message();
  const planner::MachineProfile start = small_card();
  const auto once = measure_card_kernels(small_plan(), **device, start, kQuiet);
  const auto again = measure_card_kernels(small_plan(), **device, start, kQuiet);
  ASSERT_TRUE(once && again) << once.error().message();
  ASSERT_EQ(once->points.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_GT(once->points[i].rate, 0);
    EXPECT_NEAR(once->points[i].rate, again->points[i].rate, 1e-3 * once->points[i].rate);
  }
  EXPECT_NEAR(once->memory_bandwidth, again->memory_bandwidth, 1e-3 * once->memory_bandwidth);
  EXPECT_NE(once->memory_bandwidth, start.memory_bandwidth);
  EXPECT_GT(once->launch_seconds, 0);
  EXPECT_TRUE(planner::parse_profile(planner::profile_json(*once)));
}

TEST(KernelRates, OfACardLeaveOutWhatItHasNoRoomFor) {
  const auto device = devices::make_device({.kind = devices::DeviceKind::kCuda});
  ASSERT_TRUE(device) << device.error().message();
  KernelPlan plan = small_plan();
  plan.most_bytes = 26'000;  // the product's operands and results take 26,624, the sum's 24,576
  const auto rates = measure_card_kernels(plan, **device, small_card(), kQuiet);
  ASSERT_TRUE(rates) << rates.error().message();
  ASSERT_EQ(rates->points.size(), 1u);
  EXPECT_EQ(rates->points[0].kind, "add");
}

}  // namespace
}  // namespace plimsoll::measuring
