// FP8 codes as bf16 against the two conversions that they stand for: to f32, and from there to bf16.
#include "numerics/codes_to_bf16.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "numerics/convert.h"
#include "numerics/reference.h"

namespace plimsoll::numerics {
namespace {

/// Every code, in an order that mixes them, over some blocks and a part of one.
std::vector<std::byte> every_code(int64_t cols) {
  std::vector<std::byte> codes(static_cast<size_t>(cols));
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::byte>(i * 37 % 256);
  return codes;
}

std::vector<uint16_t> by_way_of_f32(Scheme scheme, const std::vector<std::byte>& codes,
                                    const std::vector<std::byte>& scales) {
  std::vector<float> numbers(codes.size());
  dequantize(scheme, {}, codes, scales, 1, static_cast<int64_t>(codes.size()), numbers);
  std::vector<uint16_t> bits(codes.size());
  encode(Format::kBf16, numbers, std::as_writable_bytes(std::span(bits)));
  return bits;
}

void expect_the_same(Scheme scheme, const std::vector<std::byte>& scales, const std::string& what) {
  const std::vector<std::byte> codes = every_code(1003);
  const std::vector<uint16_t> expected = by_way_of_f32(scheme, codes, scales);
  for (const auto& [col, n] :
       {std::pair<size_t, size_t>{0, 1003}, {5, 300}, {128, 128}, {1001, 2}, {77, 1}}) {
    std::vector<uint16_t> got(n);
    fp8_row_to_bf16(scheme, codes.data(), scales.data(), static_cast<int64_t>(col), got);
    for (size_t i = 0; i < n; ++i)
      ASSERT_EQ(got[i], expected[col + i])
          << what << ", code " << std::to_integer<int>(codes[col + i]) << " at " << col + i;
  }
}

/// On each instruction set.
void expect_the_same_on_each(Scheme scheme, const std::vector<std::byte>& scales, const std::string& what) {
  EachTarget().run([&](const std::string& isa) { expect_the_same(scheme, scales, what + ", " + isa); });
}

TEST(CodesToBf16, WithoutScales) {
  for (const Scheme scheme : {Scheme::kE4m3, Scheme::kE5m2})
    expect_the_same_on_each(scheme, {}, std::string(info(scheme).name));
}

/// All scales of MXFP8, those among them under which numbers vanish or become infinite.
TEST(CodesToBf16, UnderEveryScaleOfABlock) {
  for (int code = 0; code < 256; ++code)
    expect_the_same_on_each(Scheme::kMxfp8, std::vector<std::byte>(32, static_cast<std::byte>(code)),
                            "mxfp8, scale " + std::to_string(code));
}

TEST(CodesToBf16, UnderScalesThatAreNoPowersOfTwo) {
  for (const float scale :
       {1.0F, 0.25F, 3.0F, 1e-30F, 0x1p-117F, 0x1p-118F, 0x1p119F, 0x1p120F, 0.0F, 1e-40F})
    for (const Scheme scheme : {Scheme::kFp8Block1x128, Scheme::kFp8Block128x128}) {
      std::vector<std::byte> scales(8 * sizeof(float));
      for (size_t block = 0; block < 8; ++block) {
        const float of_block = block == 3 ? 0x1p-3F : scale;
        std::memcpy(&scales[4 * block], &of_block, 4);
      }
      expect_the_same_on_each(scheme, scales,
                              std::string(info(scheme).name) + ", scale " + std::to_string(scale));
    }
}

TEST(CodesToBf16, KnowsWhichSchemesHaveThem) {
  EXPECT_TRUE(has_fp8_codes(Scheme::kMxfp8));
  EXPECT_FALSE(has_fp8_codes(Scheme::kNvfp4));
  EXPECT_FALSE(has_fp8_codes(Scheme::kInt8Block256));
}

}  // namespace
}  // namespace plimsoll::numerics
