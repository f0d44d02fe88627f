// What codes of moments lose, and what they must not.
#include "ops/moment_codes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "ops/update_rules.h"

namespace plimsoll::ops {
namespace {

std::vector<float> round_trip(MomentCode code, const std::vector<float>& x) {
  std::vector<std::byte> codes(x.size() * static_cast<size_t>(moment_code_bytes(code)));
  const MomentScale scale = encode_moments(code, x, codes);
  std::vector<float> again(x.size());
  decode_moments(code, scale, codes, again);
  return again;
}

/// Magnitudes from 1 down to 1e-`decades`.
std::vector<float> spread(double decades) {
  std::vector<float> x;
  for (int i = 0; i < 128; ++i)
    x.push_back(static_cast<float>((i % 2 == 0 ? 1 : -1) * 3e-5 * std::pow(10.0, -decades * i / 127)));
  return x;
}

double largest_error(MomentCode code, const std::vector<float>& x) {
  const auto again = round_trip(code, x);
  double largest = 0;
  for (size_t i = 0; i < x.size(); ++i)
    largest = std::max(largest, static_cast<double>(std::abs(again[i] / x[i] - 1)));
  return largest;
}

double mean_error(MomentCode code, const std::vector<float>& x) {
  const auto again = round_trip(code, x);
  double total = 0;
  for (size_t i = 0; i < x.size(); ++i) total += static_cast<double>(std::abs(again[i] / x[i] - 1));
  return total / static_cast<double>(x.size());
}

TEST(MomentCodes, RelativeErrorsAreThoseOfTheirFormats) {
  EXPECT_LE(largest_error(MomentCode::kE4m3, spread(4)), 0x1p-4 + 1e-6);
  EXPECT_LE(largest_error(MomentCode::kFp16, spread(8)), 0x1p-11 + 1e-6);
  EXPECT_GT(largest_error(MomentCode::kE4m3, spread(8)), 0.9) << "its least numbers are lost";
}

/// A narrow block uses all of E4M3's range, so its errors are smaller; a wide one loses no number.
TEST(MomentCodes, ExpansionFitsTheRangeOfABlock) {
  EXPECT_LT(mean_error(MomentCode::kExpanded, spread(1)), 0.6 * mean_error(MomentCode::kE4m3, spread(1)));
  EXPECT_LT(largest_error(MomentCode::kExpanded, spread(1)), 0.1) << "the least numbers are subnormal";
  EXPECT_LT(largest_error(MomentCode::kExpanded, spread(8)), 0.6);
  for (const float x : round_trip(MomentCode::kExpanded, spread(20))) EXPECT_NE(x, 0);
}

/// The moment of a parameter whose gradient is 0 for long decays to subnormal numbers beside others.
TEST(MomentCodes, ARangeBeyondF32LosesTheLeastNumbersAlone) {
  const std::vector<float> x = {1e-2F, -3e-3F, 1e-4F, 1e-42F, 0};
  const auto again = round_trip(MomentCode::kExpanded, x);
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(again[i] / x[i], 1, 0.6) << i;
  EXPECT_LE(std::abs(again[3]), 1e-30F);
  EXPECT_EQ(again[4], 0);
}

TEST(MomentCodes, ZerosAndOneMagnitude) {
  for (const MomentCode code : {MomentCode::kE4m3, MomentCode::kFp16, MomentCode::kExpanded}) {
    EXPECT_EQ(round_trip(code, {0, 0, 0}), (std::vector<float>{0, 0, 0}));
    const auto same = round_trip(code, {0.25F, -0.25F, 0});
    EXPECT_FLOAT_EQ(same[0], 0.25F);
    EXPECT_FLOAT_EQ(same[1], -0.25F);
    EXPECT_EQ(same[2], 0);
    const auto tiny = round_trip(code, {1e-42F, 0});  // 1 / x is infinite
    EXPECT_TRUE(std::isfinite(tiny[0]) && tiny[1] == 0);
  }
}

/// Codes that were never written are all 0, and so are their scales.
TEST(MomentCodes, AStateBeginsAtZero) {
  const std::vector<std::byte> codes(4);
  std::vector<float> x(4, 1.0F);
  decode_moments(MomentCode::kExpanded, {.absmax = 0, .power = 0}, codes, x);
  EXPECT_EQ(x, std::vector<float>(4, 0.0F));
}

TEST(MomentCodes, TheStepIsAdamws) {
  const float group[kAdamwFields] = {1, 0.9F, 0.1F, 0.99F, 0.01F, 1e-6F, 0.5F, 0.1F};
  std::vector<float> g = {2}, m = {1}, v = {4};
  adamw_block(group, g, m, v);
  EXPECT_FLOAT_EQ(m[0], 1.1F);
  EXPECT_FLOAT_EQ(v[0], 4.0F);
  EXPECT_FLOAT_EQ(g[0], 0.5F * 1.1F / (2.0F / 0.1F + 1e-6F));
}

}  // namespace
}  // namespace plimsoll::ops
