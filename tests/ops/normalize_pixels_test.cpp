// Pixels to floating numbers: known values, lists of numbers, operands that do not fit.
#include "ops/normalize_pixels.h"

#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace plimsoll::ops_testing {
namespace {

const Attrs kPixelScale{{"rescale", 0.5}, {"mean", std::string("1,2")}, {"std", std::string("0.5,4")}};

TEST(NormalizePixels, GivesKnownValues) {
  const RefTensor pixels = reference::tensor({DType::kU8, {2, 2}}, {0, 255, 2, 8});
  EXPECT_EQ(evaluate("normalize_pixels", {pixels}, kPixelScale)[0].data,
            (std::vector<double>{-2, 125.5 / 4, 0, 0.5}));
}

/// The list of numbers comes back as it was given, to the last bit.
TEST(NormalizePixels, ItsAttributesHoldTheNumbers) {
  ir::Graph graph;
  Builder b(graph, ops::find_op);
  const ValueId pixels = b.state({"pixels", {DType::kU8, {1, 4, 4, 3}}, ir::StateClass::kInput});
  const std::vector<double> mean{0.48145466, 1.0 / 3, 0.1}, std{0.26862954, 1e-7, 300};
  const ValueId y = ops::normalize_pixels(b, pixels, {.mean = mean, .std = std});
  ASSERT_TRUE(b.status().ok());
  EXPECT_EQ(to_string(graph.type(y)), "f32[1,4,4,3]");
  const auto parsed = ops::parse_channel_numbers(graph.op(graph.value(y).producer).attrs.str("mean"));
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(std::vector<double>(parsed->values.begin(), parsed->values.begin() + 3), mean);
}

TEST(NormalizePixels, ListsOfNumbers) {
  EXPECT_EQ(ops::parse_channel_numbers("0.5,-1")->count, 2U);
  for (const char* bad : {"", ",", "1,", "1;2", "x", "inf", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"})
    EXPECT_FALSE(ops::parse_channel_numbers(bad).has_value()) << bad;
}

TEST(NormalizePixels, SaysWhatDoesNotFit) {
  const TensorType pixels{DType::kU8, {1, 2, 2, 2}};
  Attrs flat = kPixelScale;
  flat.set("std", std::string("0.5,0"));
  const std::vector<ErrorCase> rows = {
      {"normalize_pixels", {f32({1, 2})}, kPixelScale, "normalize_pixels: pixels must be u8, is f32[1,2]"},
      {"normalize_pixels",
       {{DType::kU8, {1, 3}}},
       kPixelScale,
       "normalize_pixels: mean and std must have a number for each channel: pixels [1,3]"},
      {"normalize_pixels", {pixels}, flat, "normalize_pixels: std must be positive, rescale finite"},
  };
  for (const auto& row : rows) EXPECT_EQ(operand_error(row), row.what);
}

}  // namespace
}  // namespace plimsoll::ops_testing
