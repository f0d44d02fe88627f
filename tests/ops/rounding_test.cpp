// Rounding of references against known values, ties and limits.
#include "ops/rounding.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace plimsoll::ops {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Rounding, KeepsWhatTheFormatHolds) {
  for (uint32_t code = 0; code < 0x10000; ++code) {
    const auto value = static_cast<double>(std::bit_cast<float>(code << 16));
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(rounded(value, ir::DType::kBf16)));
    else
      EXPECT_EQ(rounded(value, ir::DType::kBf16), value);
  }
}

TEST(Rounding, TiesGoToEven) {
  EXPECT_EQ(rounded(1.0 + 0x1p-8, Precision::kBf16), 1.0);
  EXPECT_EQ(rounded(1.0 + 0x3p-8, Precision::kBf16), 1.0 + 0x1p-6);
  EXPECT_EQ(rounded(1.0 + 0x1p-8 + 0x1p-40, Precision::kBf16), 1.0 + 0x1p-7);
  EXPECT_EQ(rounded(-1.0 - 0x1p-11, Precision::kF16), -1.0);
  EXPECT_EQ(rounded(1.0 + 0x1p-11 + 0x1p-30, Precision::kTf32), 1.0 + 0x1p-10);
}

TEST(Rounding, LimitsOfTheRange) {
  EXPECT_EQ(rounded(65519.0, ir::DType::kF16), 65504.0);
  EXPECT_EQ(rounded(65520.0, ir::DType::kF16), kInfinity);
  EXPECT_EQ(rounded(-1e39, ir::DType::kBf16), -kInfinity);
  EXPECT_EQ(rounded(0x1p-24, ir::DType::kF16), 0x1p-24);  // the least subnormal
  EXPECT_EQ(rounded(0x1p-25, ir::DType::kF16), 0.0);      // a tie
  EXPECT_EQ(rounded(0x1.8p-25, ir::DType::kF16), 0x1p-24);
  EXPECT_EQ(rounded(0x1p-133, ir::DType::kBf16), 0x1p-133);
}

TEST(Rounding, NamesOfPrecisions) {
  EXPECT_EQ(parse_precision("tf32"), Precision::kTf32);
  EXPECT_EQ(parse_precision("bf16"), Precision::kBf16);
  EXPECT_EQ(parse_precision("f16"), Precision::kF16);
  EXPECT_FALSE(parse_precision("f32"));  // no attribute stands for it
}

}  // namespace
}  // namespace plimsoll::ops
