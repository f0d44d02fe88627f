#include "train/profile.h"

#include <gtest/gtest.h>

#include "io/json.h"

namespace plimsoll::train {
namespace {

/// Two steps of 10 s each: a product, a copy, an op of the update, a second of waiting.
Profile two_steps() {
  Profile profile;
  profile.facts.resize(3);
  profile.facts[0] = {
      .op = "linear", .layer = "layers.0", .flops = 1000, .bytes = 10, .dims = "[]", .types = "[]"};
  profile.facts[1] = {
      .op = "copy_start", .layer = "", .copies = true, .bytes = 8, .dims = "[]", .types = "[]"};
  profile.facts[2] = {.op = "adamw", .layer = "optimizer", .updates = true, .dims = "[]", .types = "[]"};
  for (const double start : {0.0, 10.0})
    profile.steps.push_back({.start = start,
                             .seconds = 10,
                             .data_wait_seconds = 1,
                             .tokens = 50,
                             .ops = {{0, start + 1, 4}, {1, start + 5, 2}, {2, start + 7, 2}}});
  profile.padded_tokens = 100;
  return profile;
}

TEST(Profile, FollowsPyTorchsSchedule) {
  const ProfileSchedule schedule{.wait = 1, .warmup = 1, .active = 2, .skip_first = 3, .repeat = 2};
  EXPECT_EQ(schedule.num_steps(), 11);
  std::string active;
  for (int64_t i = 0; i < 12; ++i) active += schedule.is_active(i) ? 'x' : '.';
  EXPECT_EQ(active, ".....xx..xx.");
}

TEST(Profile, AVerdictNamesAllOfAStep) {
  const auto findings = verdict_of(two_steps());
  double seconds = 0, share = 0;
  std::string places;
  for (const Finding& f : findings) {
    seconds += f.seconds, share += f.share;
    places += f.what.substr(0, 4) + " " + std::to_string(static_cast<int>(f.seconds)) + "; ";
  }
  EXPECT_DOUBLE_EQ(seconds, 10);
  EXPECT_DOUBLE_EQ(share, 1);
  // Half of the tokens are padding, and so is half of the product.
  for (size_t i = 1; i < findings.size(); ++i) EXPECT_GE(findings[i - 1].seconds, findings[i].seconds);
  for (const char* place : {"wait 1; ", "host 1; ", "copi 2; ", "matr 2; ", "opti 2; ", "padd 2; "})
    EXPECT_NE(places.find(place), std::string::npos) << place << " in " << places;
}

TEST(Profile, OpsAreMeansAndTheTraceIsJson) {
  const Tree ops = profile_ops(two_steps());
  ASSERT_EQ(ops.items.size(), 3U);
  EXPECT_EQ(to_json(ops.items[0]),
            "{\"op\": \"linear\", \"layer\": \"layers.0\", \"calls\": 1, \"seconds\": 4, \"flops\": 1000, "
            "\"bytes\": 10}");
  const auto trace = parse_json(profile_trace(two_steps()));
  ASSERT_TRUE(trace) << trace.error().message();
  EXPECT_EQ(trace->find("traceEvents")->items.size(), 3U + 2 * (2 + 3));
}

}  // namespace
}  // namespace plimsoll::train
