#include "planner/machine_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/known_profiles.h"

namespace plimsoll::planner {
namespace {

MachineProfile sample() {
  MachineProfile p = generic_cpu("avx512");
  p.name = "box";
  p.rates = "calibrated";
  p.threads = 8;
  p.points = {{"linear", ProductType::kBf16, {64, 128, 256}, 1.25e11}};
  p.factors = {{"adamw", ProductType::kF32, 1.5}};
  return p;
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(MachineProfile, ReadsBackWhatWasWritten) {
  const MachineProfile p = sample();
  const auto back = parse_profile(profile_json(p));
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(profile_json(*back), profile_json(p));
  EXPECT_EQ(back->points.size(), 1u);
  EXPECT_EQ(back->points[0].type, ProductType::kBf16);
  EXPECT_EQ(back->factors.at(0).factor, 1.5);
}

TEST(MachineProfile, WhatIsDamagedOrOfAnotherVersionIsRefused) {
  const std::string text = profile_json(sample());
  const std::string damaged[] = {
      "",
      "[]",
      "{}",
      text.substr(0, text.size() / 2),
      with(text, "\"plimsoll_machine_profile\": 2", "\"plimsoll_machine_profile\": 1"),
      with(text, "\"threads\": 8", "\"threads\": 0"),
      with(text, "\"threads\": 8", "\"threads\": -8"),
      with(text, "\"threads\": 8", "\"threads\": \"8\""),
      with(text, "\"threads\"", "\"thread\""),
      with(text, "\"name\"", "\"extra\": 1, \"name\""),
      with(text, "\"calibrated\"", "\"guessed\""),
      with(text, "\"bf16\"", "\"bf17\""),
      with(text, "\"m\": 64", "\"m\": 0"),
      with(text, "\"points\": [", "\"points\": [7, "),
      with(text, "\"factors\": [", "\"factors\": [7, "),
      with(text, "\"factor\": 1.5", "\"factor\": 0"),
      with(text, "\"launch_seconds\": 2e-06", "\"launch_seconds\": -1"),
      with(text, "\"launch_seconds\": 2e-06", "\"launch_seconds\": 1e300"),
  };
  for (const std::string& bad : damaged) {
    const auto profile = parse_profile(bad);
    ASSERT_FALSE(profile.ok()) << bad;
    EXPECT_EQ(profile.error().code, ErrorCode::kBadData) << bad;
  }
}

TEST(KnownProfiles, EveryCardCanBePlannedForAndNamesItsSource) {
  EXPECT_EQ(card_names().size(), 13u);
  for (const std::string& name : card_names()) {
    const auto card = find_card(name);
    ASSERT_TRUE(card.ok());
    EXPECT_FALSE(card->source.empty());
    EXPECT_EQ(card->rates, "data sheet");
    EXPECT_GT(card->memory_bytes, card->context_bytes);
    EXPECT_TRUE(parse_profile(profile_json(*card)).ok()) << name;
  }
  EXPECT_EQ(find_card("RTX-4090")->name, "rtx4090");
  EXPECT_EQ(cards_with(int64_t{30} << 30).front(), "a100-40") << "the smallest with room";
  EXPECT_TRUE(cards_with(int64_t{1} << 50).empty());
  const auto unknown = find_card("h10");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(unknown.error().hint, testing::HasSubstr("h100"));
}

}  // namespace
}  // namespace plimsoll::planner
