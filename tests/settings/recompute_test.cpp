#include "settings/recompute.h"

#include <gtest/gtest.h>

namespace plimsoll::settings {
namespace {

TEST(RecomputeText, SaysWhatAutoHasChosen) {
  RecomputeSettings automatic;
  automatic.mode = RecomputeMode::kAuto;
  EXPECT_EQ(recompute_text(automatic, {}), "cheap ops");
  EXPECT_EQ(recompute_text(automatic, {6, 0, 6}), "6 of 6 layers");
  EXPECT_EQ(recompute_text(automatic, {1, 0, 6}), "1 of 6 layers");
  EXPECT_EQ(recompute_text(automatic, {0, 9, 6}), "9 parts of layers");
  EXPECT_EQ(recompute_text(automatic, {0, 1, 6}), "1 part of a layer");
  EXPECT_EQ(recompute_text(automatic, {3, 2, 6}), "3 layers + 2 parts");
}

TEST(RecomputeText, RepeatsWhatIsSet) {
  RecomputeSettings every;
  every.mode = RecomputeMode::kEvery;
  every.count = 2;
  EXPECT_EQ(recompute_text(every, {3, 0, 6}), "every 2");
  RecomputeSettings full;
  full.mode = RecomputeMode::kFull;
  EXPECT_EQ(recompute_text(full, {6, 0, 6}), "full");
}

}  // namespace
}  // namespace plimsoll::settings
