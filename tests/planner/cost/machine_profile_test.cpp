#include "planner/cost/machine_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/cost/known_profiles.h"

namespace plimsoll::planner {
namespace {

MachineProfile sample() {
  MachineProfile p = generic_cpu("avx512");
  p.name = "box";
  p.rates = "calibrated";
  p.threads = 8;
  p.points = {{"linear", ProductType::kBf16, {64, 128, 256}, 1.25e11}};
  p.factors = {{"adamw", ProductType::kF32, 1.5}};
  p.copy_in_bandwidth = 8e9, p.copy_in_beside_kernels = 4e9, p.copy_kernel_seconds = 0.5;
  p.copy_out_bandwidth = 6e9, p.copy_out_beside_kernels = 4e9;
  p.disk = "/scratch";
  p.disk_read_bandwidth = 5e8, p.disk_kernel_seconds = 0.0625;
  p.fewer_threads = {{1, 0.125, 0.25, 0.5, 0.75}, {4, 0.5, 0.5, 0.875, 0.875}};
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
  EXPECT_EQ(back->disk, "/scratch");
  EXPECT_EQ(back->disk_kernel_seconds, 0.0625);
  ASSERT_EQ(back->fewer_threads.size(), 2u);
  EXPECT_EQ(back->fewer_threads[1].memory_bound, 0.875);
}

TEST(MachineProfile, WhatIsDamagedOrOfAnotherVersionIsRefused) {
  const std::string text = profile_json(sample());
  const std::string damaged[] = {
      "",
      "[]",
      "{}",
      text.substr(0, text.size() / 2),
      with(text, "\"plimsoll_machine_profile\": 4", "\"plimsoll_machine_profile\": 2"),
      with(text, "\"plimsoll_machine_profile\": 4", "\"plimsoll_machine_profile\": 5"),
      with(text, "\"disk\": \"/scratch\"", "\"disk\": 7"),
      with(text, "\"disk_read_beside_write\"", "\"disk_read_beside\""),
      with(text, "\"disk_kernel_seconds\": 0.0625", "\"disk_kernel_seconds\": 65"),
      with(text, "\"copy_kernel_seconds\": 0.5", "\"copy_kernel_seconds\": -0.5"),
      with(text, "\"fewer_threads\": [", "\"fewer_threads\": [7, "),
      with(text, "\"fewer_threads\": [{\"threads\": 1", "\"fewer_threads\": [{\"threads\": 4"),
      with(text, "{\"threads\": 4", "{\"threads\": 8"),
      with(text, "\"products\": 0.125", "\"products\": 0"),
      with(text, "\"products\": 0.125", "\"products\": 5"),
      with(text, "\"products\": 0.125", "\"product\": 0.125"),
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

TEST(MachineProfile, EveryByteThatIsChangedIsReadOrRefused) {
  const std::string text = profile_json(sample());
  constexpr std::string_view kOthers("0-\"}\0\x80", 6);
  for (size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = kOthers[i % kOthers.size()];
    const auto profile = parse_profile(changed);
    if (!profile) {
      EXPECT_EQ(profile.error().code, ErrorCode::kBadData);
      continue;
    }
    const auto back = parse_profile(profile_json(*profile));  // what is taken can be kept
    ASSERT_TRUE(back) << changed << back.error().message();
  }
}

TEST(MachineProfile, ALinkBoundsWhatWasMeasured) {
  const MachineProfile slow = with_link(sample(), 1e9);
  EXPECT_EQ(slow.copy_in_bandwidth, 1e9);
  EXPECT_EQ(slow.copy_in_beside_kernels, 1e9);
  EXPECT_EQ(slow.copy_kernel_seconds, 0.125) << "a quarter of the bytes a second";
  const MachineProfile fast = with_link(sample(), 50e9);
  EXPECT_EQ(fast.copy_in_bandwidth, 8e9);
  EXPECT_EQ(fast.copy_kernel_seconds, 0.5);
  EXPECT_EQ(with_link(generic_cpu("avx2"), 50e9).copy_in_bandwidth, 50e9) << "nothing was measured";
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
  EXPECT_EQ(cards_with(int64_t{31} << 30).front(), "a100-40") << "the smallest with room";
  EXPECT_TRUE(cards_with(int64_t{1} << 50).empty());
  const auto unknown = find_card("h10");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(unknown.error().hint, testing::HasSubstr("h100"));
}

TEST(KnownProfiles, ANameLikeNoneIsAnsweredWithAllThatTheSettingTakes) {
  EXPECT_EQ(find_card("rtx9999x").error().hint.substr(0, 12), "a card: t4, ");
  const std::string hint = find_card("quadro").error().hint;
  EXPECT_THAT(hint, testing::HasSubstr("rtx-pro-6000; only to plan: mi300x; auto: this machine; built-in: "));
  EXPECT_THAT(hint, testing::HasSubstr("or the path of a profile's file"));
}

TEST(KnownProfiles, AnUnknownNameIsAnsweredWithThoseThatContainIt) {
  EXPECT_EQ(find_card("a100").error().hint, "did you mean a100-40 or a100-80?");
  EXPECT_EQ(find_card("4090").error().hint, "did you mean rtx4090?");
  EXPECT_EQ(find_card("RTX PRO").error().hint, "did you mean rtx-pro-6000?");
}

TEST(KnownProfiles, ACardIsKnownByWhatItsDriverCallsIt) {
  const auto called = [](std::string_view name, double gib) {
    const auto card = card_called(name, static_cast<int64_t>(gib * (int64_t{1} << 30)));
    return card ? card->name : "";
  };
  EXPECT_EQ(called("NVIDIA H100 80GB HBM3", 79.2), "h100");
  EXPECT_EQ(called("NVIDIA A100-SXM4-40GB", 39.4), "a100-40");
  EXPECT_EQ(called("NVIDIA A100-SXM4-80GB", 79.2), "a100-80");
  EXPECT_EQ(called("NVIDIA GeForce RTX 4090", 23.6), "rtx4090");
  EXPECT_EQ(called("NVIDIA GeForce RTX 4090 D", 23.6), "rtx4090");
  EXPECT_EQ(called("NVIDIA L4", 22), "l4");
  EXPECT_EQ(called("Tesla T4", 14.6), "t4");
  EXPECT_EQ(called("NVIDIA A10G", 22), "a10g");
  EXPECT_EQ(called("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 95), "rtx-pro-6000");
  for (const char* other :
       {"NVIDIA L40S", "NVIDIA A10", "NVIDIA H100 80GB HBM3 MIG 1g.10gb", "Fake card", ""})
    EXPECT_EQ(called(other, 24), "") << other;
  for (const std::string& name : card_names())
    EXPECT_EQ(cuda_capability(*find_card(name)) > 0, name != "mi300x") << "an AMD card";
  EXPECT_EQ(cuda_capability(*find_card("h100")), 90);
}

/// Attention of 16 bits and in tf32 goes by matrix units where cards have them for it (an expectation), else
/// by FMA units.
TEST(KnownProfiles, AttentionRunsOnMatrixUnitsFromAmpereOn) {
  const auto attention = [](const char* card) { return find_card(card)->attention_flops; };
  EXPECT_EQ(attention("t4")[1], attention("t4")[0]);
  EXPECT_EQ(attention("t4")[3], attention("t4")[0]);
  for (const char* card : {"a10g", "a100-40", "l4", "h100", "b200", "rtx5090"}) {
    EXPECT_GT(attention(card)[1], 1.3 * attention(card)[0]) << card << ": tf32";
    EXPECT_LT(attention(card)[1], attention(card)[2]) << card << ": half the rate of 16 bits or less";
    EXPECT_GT(attention(card)[2], 2 * attention(card)[0]) << card;
    EXPECT_LT(attention(card)[2], find_card(card)->product_flops[2]) << card;
    EXPECT_EQ(attention(card)[3], attention(card)[2]) << card;
  }
}

/// The one page from a card (bench/results): an H100's products, copies and pinned link, each within a
/// factor.
TEST(KnownProfiles, RatesCarryWhatWasReachedOnTheOneMeasuredCard) {
  const MachineProfile h100 = *find_card("h100");
  const auto is_near = [](double rate, double measured) {
    return rate > measured / 1.3 && rate < measured * 1.3;
  };
  EXPECT_TRUE(is_near(h100.product_flops[0], 51.2e12));
  EXPECT_TRUE(is_near(h100.product_flops[2], 826.7e12));
  EXPECT_TRUE(is_near(h100.attention_flops[0], 18e12));
  EXPECT_TRUE(is_near(h100.copy_in_bandwidth, 54.8e9));
  EXPECT_TRUE(is_near(h100.launch_seconds, 1.08e-6));
  EXPECT_EQ(card_of_no_known_rates().rates, kUnknownRates);
}

}  // namespace
}  // namespace plimsoll::planner
