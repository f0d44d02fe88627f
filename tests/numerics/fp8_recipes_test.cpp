// The recipes against cases that tests/interop/record_fp8.py recorded with torch's float8 dtypes and numpy:
// codes, scales and histories bit for bit, over odd shapes, zeros, infinities, NaN and subnormals.
#include "numerics/fp8_recipes.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

namespace plimsoll::numerics {
namespace {

uint64_t splitmix(uint64_t z) {
  z += 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

float number(const std::string& kind, uint64_t h) {
  const auto high = static_cast<uint32_t>(h >> 32), low = static_cast<uint32_t>(h);
  const float small = static_cast<float>(static_cast<int>(low & 0xFF) - 128) / 32;
  const auto wide = std::bit_cast<float>((high & 0x807FFFFF) | (107 + low % 41) << 23);
  if (kind == "small") return small;
  if (kind == "wide") return wide;
  if (kind == "bits") return std::bit_cast<float>(high);
  if (kind == "subnormal") return std::bit_cast<float>(high & 0x807FFFFF);
  if (kind == "sparse") return low % 8 == 0 ? wide : 0.0F;
  if (kind == "zero") return 0;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  switch (low % 97) {
    case 0:
      return kInfinity;
    case 1:
      return std::numeric_limits<float>::quiet_NaN();
    case 2:
      return -0.0F;
    case 3:
      return -kInfinity;
    default:
      return small;
  }
}

std::vector<float> numbers(const std::string& kind, uint64_t seed, size_t n) {
  std::vector<float> x(n);
  for (size_t i = 0; i < n; ++i) x[i] = number(kind, splitmix(i + (seed << 32)));
  return x;
}

uint64_t fnv(std::span<const std::byte> bytes) {
  uint64_t h = 0xCBF29CE484222325;
  for (const std::byte b : bytes) h = (h ^ std::to_integer<uint64_t>(b)) * 0x100000001B3;
  return h;
}

float float_of(const std::string& hex) {
  return std::bit_cast<float>(static_cast<uint32_t>(std::stoul(hex, nullptr, 16)));
}

/// Of E2M1 a NaN has no sign to agree on.
void check_matrix(std::istringstream& line, const std::string& scheme_name) {
  std::string kind, codes_hash, scales_hash, amax_bits;
  uint64_t seed = 0;
  int64_t rows = 0, cols = 0;
  line >> kind >> seed >> rows >> cols >> codes_hash >> scales_hash >> amax_bits;
  std::vector<float> x = numbers(kind, seed, static_cast<size_t>(rows * cols));
  const bool transforms = scheme_name == "hadamard";
  if (transforms) random_hadamard(x);
  const Scheme scheme = transforms ? Scheme::kNvfp4 : *find_scheme(scheme_name);
  const float amax = largest_magnitude(x);
  EXPECT_EQ(std::bit_cast<uint32_t>(amax), std::bit_cast<uint32_t>(float_of(amax_bits)));
  const TensorScale tensor = tensor_scale(scheme, amax);
  std::vector<std::byte> codes(static_cast<size_t>(rows * code_row_bytes(scheme, cols)));
  std::vector<std::byte> scales(
      static_cast<size_t>(scale_rows(scheme, rows) * scale_cols(scheme, cols) * scale_bytes(scheme)));
  quantize(scheme, tensor, x, rows, cols, codes, scales);
  if (info(scheme).block_rows == 0) {
    scales.resize(4);
    std::memcpy(scales.data(), &tensor.decode, 4);
  }
  const auto what = [&] {
    return scheme_name + " " + kind + " " + std::to_string(rows) + "x" + std::to_string(cols);
  };
  EXPECT_EQ(fnv(codes), std::stoull(codes_hash, nullptr, 16)) << what();
  EXPECT_EQ(fnv(scales), std::stoull(scales_hash, nullptr, 16)) << what();
}

void check_delayed(std::istringstream& line) {
  size_t length = 0;
  DelayedScaling scaling;
  float largest_code = 0;
  line >> length >> scaling.margin >> scaling.most_recent >> largest_code;
  std::vector<float> history(length);
  float scale = 1;
  for (std::string amax, expected; line >> amax >> expected;) {
    const float now = float_of(amax);
    if (now > history[0]) history[0] = now;
    scale = next_delayed_scale(scaling, largest_code, history, 1, scale);
    roll_history(history, 1);
    EXPECT_EQ(std::bit_cast<uint32_t>(scale), std::bit_cast<uint32_t>(float_of(expected)));
    EXPECT_EQ(history[0], 0);
  }
}

TEST(Fp8Recipes, MatchRecordedCases) {
  std::ifstream file(std::string(PLIMSOLL_TEST_DIR) + "/numerics/recorded/fp8_recipes.txt");
  size_t cases = 0;
  for (std::string text; std::getline(file, text) && !HasFailure(); ++cases) {
    std::istringstream line(text);
    std::string first;
    line >> first;
    if (first == "delayed")
      check_delayed(line);
    else
      check_matrix(line, first);
  }
  EXPECT_GE(cases, 2000U);
}

TEST(Fp8Recipes, FormsOfOperands) {
  using enum OperandRole;
  const auto scheme = [](Fp8Options options, OperandRole role) {
    return operand_form(options, role, true).scheme;
  };
  EXPECT_EQ(scheme({.recipe = Fp8Recipe::kDelayed}, kGradient), Scheme::kE5m2);
  EXPECT_EQ(scheme({.recipe = Fp8Recipe::kCurrent, .hybrid = false}, kGradient), Scheme::kE4m3);
  EXPECT_EQ(scheme({.recipe = Fp8Recipe::kBlock}, kWeight), Scheme::kFp8Block128x128);
  EXPECT_EQ(scheme({.recipe = Fp8Recipe::kBlock}, kGradient), Scheme::kFp8Block1x128);
  EXPECT_EQ(scheme({.recipe = Fp8Recipe::kMxfp8}, kWeight), Scheme::kMxfp8);
  const Fp8Options nvfp4{.recipe = Fp8Recipe::kNvfp4};
  EXPECT_EQ(operand_form(nvfp4, kWeight, true), (OperandForm{Scheme::kNvfp4Block16x16, false, false}));
  EXPECT_EQ(operand_form(nvfp4, kInput, false), (OperandForm{Scheme::kNvfp4, false, false}));
  EXPECT_EQ(operand_form(nvfp4, kInput, true), (OperandForm{Scheme::kNvfp4, true, false}));
  EXPECT_EQ(operand_form(nvfp4, kGradient, false), (OperandForm{Scheme::kNvfp4, false, true}));
  EXPECT_EQ(operand_form(nvfp4, kGradient, true), (OperandForm{Scheme::kNvfp4, true, true}));
  for (const std::string_view each : kFp8Recipes) EXPECT_EQ(name(*find_fp8_recipe(each)), each);
  EXPECT_FALSE(find_fp8_recipe("mxfp4"));
}

/// Scales are those of rounding to nearest, and the mean over draws is the number.
TEST(Fp8Recipes, StochasticRoundingKeepsTheMean) {
  constexpr size_t kCols = 48, kDraws = 4000;
  const std::vector<float> x = numbers("small", 5, kCols);
  const TensorScale tensor = tensor_scale(Scheme::kNvfp4, largest_magnitude(x));
  std::vector<std::byte> nearest(kCols / 2), scales(kCols / 16), codes(kCols / 2), same(kCols / 16);
  quantize(Scheme::kNvfp4, tensor, x, 1, kCols, nearest, scales);
  std::vector<double> mean(kCols);
  std::vector<float> back(kCols);
  for (uint64_t draw = 0; draw < kDraws; ++draw) {
    quantize_stochastically(tensor, x, codes, same, {.seed = 3, .stream = draw});
    ASSERT_EQ(same, scales);
    dequantize(Scheme::kNvfp4, tensor, codes, same, 1, kCols, back);
    for (size_t i = 0; i < kCols; ++i) mean[i] += static_cast<double>(back[i]) / kDraws;
  }
  for (size_t i = 0; i < kCols; ++i) EXPECT_NEAR(mean[i], static_cast<double>(x[i]), 0.05) << i;
}

TEST(Fp8Recipes, TheTransformIsOrthogonal) {
  std::vector<float> a = numbers("small", 1, 64), b = numbers("small", 2, 64);
  double before = 0, after = 0;
  for (size_t i = 0; i < 64; ++i) before += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  random_hadamard(a);
  random_hadamard(b);
  for (size_t i = 0; i < 64; ++i) after += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  EXPECT_NEAR(after, before, 0.03 * 64);  // each number is rounded to bf16
}

TEST(Fp8Recipes, AScaleNotYetWrittenIsOne) {
  EXPECT_EQ(given_scale(5, 0).scale, 1);
  EXPECT_EQ(given_scale(5, 4).decode, 0.25F);
}

}  // namespace
}  // namespace plimsoll::numerics
