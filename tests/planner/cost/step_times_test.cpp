#include "planner/cost/step_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/json.h"
#include "planner/cost/known_profiles.h"

namespace plimsoll::planner {
namespace {

using testing::HasSubstr;

StepTimes sample(const MachineProfile& profile) {
  StepTimes times{.machine = profile.name,
                  .profile = profile_identity(profile),
                  .threads = profile.threads,
                  .seconds = 1.5,
                  .estimated = 1.0};
  times.add("linear", ProductType::kBf16, 0.5, 0.5);
  times.add("linear_dw", ProductType::kBf16, 0.3, 0.2);
  times.add("linear_dw", ProductType::kBf16, 0.6, 0.2);
  return times;
}

TEST(StepTimes, ReadBackWhatWasWritten) {
  const StepTimes times = sample(generic_cpu("avx2"));
  const std::string text = io::to_json(step_times_event(times));
  const auto back = parse_step_times(*io::parse_json(text));
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(io::to_json(step_times_event(*back)), text);
  EXPECT_EQ(back->ops.size(), 2u);
  EXPECT_EQ(back->ops[1].calls, 2);
}

TEST(StepTimes, WhatIsDamagedIsRefused) {
  const std::string text = io::to_json(step_times_event(sample(generic_cpu("avx2"))));
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"\"estimate\"", "\"estimates\""},
                                                        {"\"machine\": \"generic\"", "\"machine\": 7"},
                                                        {"\"seconds\": 1.5", "\"seconds\": -1.5"},
                                                        {"\"seconds\": 1.5", "\"seconds\": 1e300"},
                                                        {"\"threads\": 1", "\"threads\": \"1\""},
                                                        {"\"bf16\"", "\"bf17\""},
                                                        {"\"calls\": 1", "\"calls\": -1"},
                                                        {"\"op\": \"linear\"", "\"op\": \"\""},
                                                        {"\"ops\": [", "\"ops\": [7, "},
                                                        {"\"ops\"", "\"hops\""}}) {
    std::string damaged = text;
    ASSERT_NE(damaged.find(from), std::string::npos) << from;
    damaged.replace(damaged.find(from), from.size(), to);
    const auto times = parse_step_times(*io::parse_json(damaged));
    ASSERT_FALSE(times.ok()) << damaged;
    EXPECT_EQ(times.error().code, ErrorCode::kBadData);
  }
}

TEST(StepTimes, ADifferenceBeyondAQuarterNamesTheKindOfOp) {
  StepTimes times = sample(generic_cpu("avx2"));
  EXPECT_THAT(difference_text(times), HasSubstr("50 % more"));
  EXPECT_THAT(difference_text(times), HasSubstr("linear_dw in bf16: 0.9 s instead of 0.4 s"));
  times.seconds = 1.2;
  EXPECT_EQ(difference_text(times), "");
  times.seconds = 3.0;
  EXPECT_THAT(difference_text(times), HasSubstr("no kind of op stands out")) << "0.5 s of 2 s";
  times.seconds = 0.5;
  EXPECT_THAT(difference_text(times), HasSubstr("50 % less"));
}

TEST(StepTimes, RunsCorrectTheProfileThatTheyWereEstimatedBy) {
  const MachineProfile profile = generic_cpu("avx2");
  const std::vector<StepTimes> runs = {sample(profile), sample(profile)};
  const auto corrected = with_measured(profile, runs);
  ASSERT_TRUE(corrected.ok());
  ASSERT_EQ(corrected->factors.size(), 2u);
  EXPECT_DOUBLE_EQ(corrected->factors[0].factor, 1.0);
  EXPECT_DOUBLE_EQ(corrected->factors[1].factor, 0.9 / 0.4);
  EXPECT_NE(profile_identity(*corrected), profile_identity(profile));
  const auto again = with_measured(*corrected, runs);
  ASSERT_FALSE(again.ok()) << "estimated by another profile";
  EXPECT_THAT(again.error().hint, HasSubstr("--from A --from B"));
  MachineProfile offloaded = profile;
  offloaded.name = "other";
  EXPECT_FALSE(with_measured(offloaded, runs).ok());
}

}  // namespace
}  // namespace plimsoll::planner
