// Codes and scales against what tests/interop/record_quantized.py recorded, and the rules at their edges.
#include "numerics/bitsandbytes.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

#include "numerics/convert.h"
#include "numerics/quantized.h"

namespace plimsoll::numerics::bitsandbytes {
namespace {

/// The recipe of record_quantized.py.
std::vector<float> recorded_values(size_t n) {
  std::vector<float> x(n);
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t h = i * 2654435761U + 12345U;
    const auto g = static_cast<int32_t>((h ^ h >> 15U) * 2246822519U);
    x[i] = std::ldexp(static_cast<float>(g * 0x1p-31), -static_cast<int>(h % 7));
    if (i >= 200 && i < 264) x[i] = 0;
  }
  return x;
}

std::vector<float> as_bf16(const std::vector<float>& x) {
  std::vector<std::byte> codes(x.size() * 2);
  std::vector<float> rounded(x.size());
  encode(Format::kBf16, x, codes);
  decode(Format::kBf16, codes, rounded);
  return rounded;
}

template <typename T>
uint32_t quantized_mark(const std::vector<T>& values) {
  uint32_t total = 0;
  for (uint32_t i = 0; i < values.size(); ++i)
    if constexpr (sizeof(T) == 4)
      total += (i + 1) * std::bit_cast<uint32_t>(values[i]);
    else
      total += (i + 1) * static_cast<uint8_t>(values[i]);
  return total;
}

template <typename T>
std::string first_bytes(const std::vector<T>& values) {
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(16, values.size()); ++i) {
    const auto byte = static_cast<uint8_t>(values[i]);
    text += "0123456789abcdef"[byte >> 4U];
    text += "0123456789abcdef"[byte & 15U];
  }
  return text;
}

std::string four_bit_line(const std::string& kind, size_t n) {
  std::vector<float> x = recorded_values(n);
  if (kind.ends_with("-bf16")) x = as_bf16(x);
  std::vector<std::byte> codes((n + 1) / 2);
  std::vector<float> absmax((n + 63) / 64);
  quantize_four_bit(kind.starts_with("nf4") ? FourBit::kNf4 : FourBit::kFp4, x, codes, absmax);
  const Nested nested = quantize_absmax(absmax);
  std::ostringstream line;
  line << kind << " " << n << " | " << first_bytes(codes) << " | " << quantized_mark(codes) << " | "
       << quantized_mark(absmax) << " " << quantized_mark(nested.codes) << " "
       << quantized_mark(nested.absmax);
  char offset[64];
  std::snprintf(offset, sizeof offset, " | 0x1.%013llxp",
                static_cast<unsigned long long>(std::bit_cast<uint64_t>(static_cast<double>(nested.offset)) &
                                                0xFFFFFFFFFFFFFULL));
  return line.str() + offset + std::to_string(std::ilogb(nested.offset));
}

std::string int8_line(size_t n, size_t rows) {
  const size_t cols = n / rows;
  const std::vector<float> x = recorded_values(n);
  std::vector<int8_t> codes(rows * cols);
  std::vector<float> scb;
  for (size_t r = 0; r < rows; ++r)
    scb.push_back(
        quantize_int8_row(std::span(x).subspan(r * cols, cols), std::span(codes).subspan(r * cols, cols)));
  std::ostringstream line;
  line << "int8 " << n << " " << rows << " | " << first_bytes(codes) << " | " << quantized_mark(codes)
       << " | " << quantized_mark(scb);
  return line.str();
}

TEST(Bitsandbytes, GivesTheRecordedCodes) {
  std::ifstream file(PLIMSOLL_TEST_DIR "/numerics/recorded/bitsandbytes.txt");
  std::string line, kind;
  int count = 0;
  while (std::getline(file, line)) {
    if (line.starts_with("#")) continue;
    std::istringstream words(line);
    size_t n = 0, rows = 1;
    words >> kind >> n;
    if (kind == "int8") words >> rows;
    EXPECT_EQ(kind == "int8" ? int8_line(n, rows) : four_bit_line(kind, n), line);
    ++count;
  }
  EXPECT_EQ(count, 25);
}

TEST(Bitsandbytes, BlocksOfZerosAndOddEnds) {
  for (const FourBit type : {FourBit::kNf4, FourBit::kFp4}) {
    const auto zero = static_cast<std::byte>(type == FourBit::kNf4 ? 0x77 : 0);
    std::vector<float> x(65, 0.0F), absmax(2), back(65, 1.0F);
    std::vector<std::byte> codes(33);
    quantize_four_bit(type, x, codes, absmax);
    EXPECT_EQ(absmax[0], 0.0F);
    EXPECT_EQ(absmax[1], 1e-38F) << "the divisor of a block that is not filled";
    for (const std::byte code : codes) EXPECT_EQ(code, zero);
    dequantize_four_bit(type, codes.data(), 0, absmax.data(), std::span(back));
    EXPECT_EQ(back, x);
  }
  const Nested nested = quantize_absmax(std::vector<float>(300, 0.25F));
  EXPECT_EQ(nested.offset, 0.25F);
  EXPECT_EQ(nested.codes, std::vector<uint8_t>(300, 0)) << "a block of zeros has codes 0";
  EXPECT_EQ(dequantize_absmax(nested), std::vector<float>(300, 0.25F));
  std::vector<int8_t> codes(3, 9);
  EXPECT_EQ(quantize_int8_row(std::vector<float>(3, 0.0F), codes), 0.0F);
  EXPECT_EQ(codes, std::vector<int8_t>(3, 0));
}

TEST(Bitsandbytes, BoundsBelongToTheLowerCode) {
  const auto& values = values_of(FourBit::kNf4);
  for (size_t k = 0; k + 1 < 16; ++k) {
    std::vector<float> x(64, 0.0F), absmax(1);
    x[0] = 1.0F;
    x[2] = (values[k] + values[k + 1]) / 2.0F;
    x[3] = std::nextafter(x[2], 2.0F);
    std::vector<std::byte> codes(32);
    quantize_four_bit(FourBit::kNf4, x, codes, absmax);
    EXPECT_EQ(static_cast<unsigned>(codes[1]), k << 4U | (k + 1));
  }
}

TEST(Bitsandbytes, ScalesComeBackNearly) {
  std::vector<float> absmax;
  for (int i = 0; i < 700; ++i) absmax.push_back(0.05F + 0.01F * std::sin(static_cast<float>(i)));
  const Nested nested = quantize_absmax(absmax);
  const std::vector<float> back = dequantize_absmax(nested);
  for (size_t i = 0; i < back.size(); ++i) EXPECT_NEAR(back[i], absmax[i], 0.01 * 0.008);
}

}  // namespace
}  // namespace plimsoll::numerics::bitsandbytes
