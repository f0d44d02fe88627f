// Every 16-bit pattern against arithmetic, in place and apart, at lengths around the block's.
#include "io/tensor_convert.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

namespace plimsoll::io {
namespace {

/// The value of a 16-bit float by its definition; NaN for NaNs.
double value_of(uint16_t h, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = h >> mantissa_bits & ((1 << exponent_bits) - 1);
  const int mantissa = h & ((1 << mantissa_bits) - 1);
  const double sign = h >> 15 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1)
    return mantissa != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  const double fraction = std::ldexp(mantissa, -mantissa_bits);
  return sign * (exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias));
}

void expect_all_patterns(FloatFormat format, int exponent_bits, int mantissa_bits) {
  constexpr int64_t kAll = 1 << 16;
  std::vector<uint16_t> stored(kAll);
  for (int64_t i = 0; i < kAll; ++i) stored[static_cast<size_t>(i)] = static_cast<uint16_t>(i);
  std::vector<float> converted(kAll);
  convert_to_f32(format, std::as_bytes(std::span(stored)).data(), converted.data(), kAll);
  for (size_t i = 0; i < kAll; ++i) {
    const double expected = value_of(stored[i], exponent_bits, mantissa_bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(converted[i])) << i;
      continue;
    }
    ASSERT_EQ(static_cast<double>(converted[i]), expected) << i;
    ASSERT_EQ(std::signbit(converted[i]), std::signbit(expected)) << i;
  }
}

TEST(TensorConvert, F16IsExact) { expect_all_patterns(FloatFormat::kF16, 5, 10); }
TEST(TensorConvert, Bf16IsExact) { expect_all_patterns(FloatFormat::kBf16, 8, 7); }

TEST(TensorConvert, ConvertsInPlace) {
  for (const FloatFormat format : {FloatFormat::kF16, FloatFormat::kBf16})
    for (const int64_t n : {1, 2, 3, 511, 512, 513, 1024, 1537}) {
      std::vector<uint16_t> stored(static_cast<size_t>(n));
      for (size_t i = 0; i < stored.size(); ++i) stored[i] = static_cast<uint16_t>(i * 40503U);
      std::vector<float> apart(stored.size()), place(stored.size() + 1, 7.0F);
      convert_to_f32(format, std::as_bytes(std::span(stored)).data(), apart.data(), n);
      auto* upper = reinterpret_cast<std::byte*>(place.data()) + 2 * n;
      std::memcpy(upper, stored.data(), stored.size() * 2);
      convert_to_f32(format, upper, place.data(), n);
      EXPECT_EQ(std::memcmp(apart.data(), place.data(), apart.size() * 4), 0) << n;
      EXPECT_EQ(place.back(), 7.0F) << "nothing beyond is written";
    }
}

TEST(TensorConvert, RoundsF64ToNearest) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> stored = {0.0,   -0.0,      0.1,          1 + 0x1p-24, 1 + 0x1.8p-23,
                                      1e300, -infinity, std::nan(""), 1e-46};
  std::vector<float> converted(stored.size());
  convert_to_f32(FloatFormat::kF64, std::as_bytes(std::span(stored)).data(), converted.data(),
                 static_cast<int64_t>(stored.size()));
  for (size_t i = 0; i < stored.size(); ++i) {
    const auto expected = static_cast<float>(stored[i]);
    if (std::isnan(expected))
      EXPECT_TRUE(std::isnan(converted[i]));
    else
      EXPECT_EQ(std::bit_cast<uint32_t>(converted[i]), std::bit_cast<uint32_t>(expected)) << stored[i];
  }
}

TEST(TensorConvert, KeepsF32Bits) {
  std::vector<uint32_t> bits = {0x7fa00001, 0xffc12345, 0x80000000, 0x00000001, 0x3f800000};
  std::vector<float> converted(bits.size());
  convert_to_f32(FloatFormat::kF32, std::as_bytes(std::span(bits)).data(), converted.data(),
                 static_cast<int64_t>(bits.size()));
  EXPECT_EQ(std::memcmp(bits.data(), converted.data(), bits.size() * 4), 0);
}

TEST(TensorConvert, NothingIsFine) {
  for (const FloatFormat format :
       {FloatFormat::kF32, FloatFormat::kF16, FloatFormat::kBf16, FloatFormat::kF64})
    convert_to_f32(format, nullptr, nullptr, 0);
}

TEST(TensorConvert, KnowsTheNames) {
  EXPECT_EQ(float_format("BF16"), FloatFormat::kBf16);
  EXPECT_EQ(float_format("F64"), FloatFormat::kF64);
  for (const char* name : {"I32", "F8_E4M3", "BOOL", "bf16", ""}) EXPECT_FALSE(float_format(name)) << name;
}

}  // namespace
}  // namespace plimsoll::io
