#include "profiling/profile.h"

#include <gtest/gtest.h>

#include "profiling/diagnosis.h"
#include "profiling/profile_testing.h"

namespace plimsoll::profiling {
namespace {

using profile_testing::two_steps;

TEST(Profile, FollowsPyTorchsSchedule) {
  const ProfileSchedule schedule{.wait = 1, .warmup = 1, .active = 2, .skip_first = 3, .repeat = 2};
  EXPECT_EQ(schedule.num_steps(), 11);
  std::string active;
  for (int64_t i = 0; i < 12; ++i) active += schedule.is_active(i) ? 'x' : '.';
  EXPECT_EQ(active, ".....xx..xx.");
}

TEST(Profile, AVerdictNamesAllOfAStep) {
  const auto findings = diagnose(profiling::profile_testing::two_steps());
  double seconds = 0, share = 0;
  std::string places;
  for (const Finding& f : findings) {
    seconds += f.seconds, share += f.share;
    places += f.what.substr(0, 4) + " " + std::to_string(static_cast<int>(f.seconds)) + "; ";
  }
  EXPECT_DOUBLE_EQ(seconds, 10);
  EXPECT_DOUBLE_EQ(share, 1);
  // Half of the tokens are padding, and so is half of the product.
  for (size_t i = 1; i < findings.size(); ++i) {
    EXPECT_LE(findings[i - 1].kind, findings[i].kind);
    if (findings[i - 1].kind == findings[i].kind) {
      EXPECT_GE(findings[i - 1].seconds, findings[i].seconds);
    }
  }
  for (const char* place : {"wait 1; ", "host 1; ", "copi 2; ", "matr 2; ", "opti 2; ", "padd 2; "})
    EXPECT_NE(places.find(place), std::string::npos) << place << " in " << places;
}

}  // namespace
}  // namespace plimsoll::profiling
