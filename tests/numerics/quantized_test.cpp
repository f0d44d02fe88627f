#include "numerics/quantized.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace plimsoll::numerics {
namespace {

/// 24 bits of a hash as a fraction, each block of another magnitude; exact in f32.
std::vector<float> made(size_t n) {
  std::vector<float> x(n);
  for (size_t i = 0; i < n; ++i) {
    const auto hash = static_cast<uint32_t>(i * 2654435761U);
    const float fraction = static_cast<float>(static_cast<int32_t>(hash >> 8) - (1 << 23)) / (1 << 23);
    x[i] = std::ldexp(fraction, static_cast<int>(i / 64 % 7) - 3);
  }
  return x;
}

template <typename T>
uint64_t fnv(const std::vector<T>& values) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const std::byte b : std::as_bytes(std::span(values)))
    hash = (hash ^ std::to_integer<uint64_t>(b)) * 0x100000001b3U;
  return hash;
}

struct Recorded {
  size_t n;
  FourBit format;
  uint64_t codes, scales, values, bf16;
  float offset;
  uint64_t scale_codes, twice;
};

/// Of bitsandbytes 0.50.2 on a CPU, quantize_4bit and dequantize_4bit of these numbers.
constexpr Recorded kRecorded[] = {
    {100, FourBit::kNf4, 0xecdff5170dab9bb7U, 0x5d6196a55a38efcbU, 0xdbe05f6ab57987b8U, 0xdc8ab17510740f9dU,
     0x1.7d6d64p-3F, 0x831c907b4ea2b60U, 0xbf87a4e0095067bU},
    {100, FourBit::kFp4, 0x3852e197c29ff248U, 0x5d6196a55a38efcbU, 0x375d61bbb9d80284U, 0x204fe527c7a35c44U,
     0x1.7d6d64p-3F, 0x831c907b4ea2b60U, 0x6d3a061489436ef0U},
    {40000, FourBit::kNf4, 0x227bb0485b6467deU, 0x5d58c10ded4308e0U, 0x1245c5a34cce836aU, 0x5ba0dc8e474b9521U,
     0x1.1ef7e6p+1F, 0xcacfc60f50ba5284U, 0x671fd646f6c93426U},
    {40000, FourBit::kFp4, 0xce83da8dd388060cU, 0x5d58c10ded4308e0U, 0xbcc944d3b8dd6d20U, 0x39c1638c21f53381U,
     0x1.1ef7e6p+1F, 0xcacfc60f50ba5284U, 0x2a73b86a568b3dd2U}};

TEST(Quantized, CodesScalesAndValuesAreBitsandbytes) {
  for (const Recorded& r : kRecorded) {
    const std::vector<float> x = made(r.n);
    std::vector<std::byte> codes((r.n + 1) / 2);
    std::vector<float> scales((r.n + 63) / 64), values(r.n);
    std::vector<uint16_t> bf16(r.n);
    quantize_four_bit(r.format, x, codes, scales);
    EXPECT_EQ(fnv(codes), r.codes) << r.n;
    EXPECT_EQ(fnv(scales), r.scales) << r.n;
    dequantize_four_bit(r.format, codes.data(), 0, scales.data(), std::span(values));
    EXPECT_EQ(fnv(values), r.values) << r.n;
    dequantize_four_bit(r.format, codes.data(), 0, scales.data(), std::span(bf16));
    EXPECT_EQ(fnv(bf16), r.bf16) << r.n;
  }
}

/// Its mean is a sum of f32 in an order of its own: an ulp at most away, and here the codes are the same.
TEST(Quantized, ScalesOfScalesAreBitsandbytes) {
  for (const Recorded& r : kRecorded) {
    const std::vector<float> x = made(r.n);
    std::vector<std::byte> codes((r.n + 1) / 2);
    std::vector<float> scales((r.n + 63) / 64), again(scales.size()), values(r.n);
    quantize_four_bit(r.format, x, codes, scales);
    const bitsandbytes::Nested nested = bitsandbytes::quantize_absmax(scales);
    EXPECT_NEAR(nested.offset, r.offset, std::abs(r.offset) * 0x1p-23F);
    EXPECT_EQ(fnv(nested.codes), r.scale_codes) << r.n;
    dequantize_scales(reinterpret_cast<const std::byte*>(nested.codes.data()), nested.absmax.data(),
                      nested.offset, 0, again);
    EXPECT_EQ(again, bitsandbytes::dequantize_absmax(nested));
    dequantize_four_bit(r.format, codes.data(), 0, again.data(), std::span(values));
    if (nested.offset == r.offset) {
      EXPECT_EQ(fnv(values), r.twice) << r.n;
    }
  }
}

/// From any element to any, as the whole has it; both result types.
TEST(Quantized, RunsAreThoseOfTheWhole) {
  const std::vector<float> x = made(1000);
  std::vector<std::byte> codes(500);
  std::vector<float> scales(16), whole(1000);
  std::vector<uint16_t> whole_bf16(1000);
  quantize_four_bit(FourBit::kNf4, x, codes, scales);
  dequantize_four_bit(FourBit::kNf4, codes.data(), 0, scales.data(), std::span(whole));
  dequantize_four_bit(FourBit::kNf4, codes.data(), 0, scales.data(), std::span(whole_bf16));
  for (const auto& [first, count] :
       {std::pair<size_t, size_t>{0, 1}, {1, 5}, {63, 2}, {64, 64}, {65, 200}, {127, 873}, {999, 1}}) {
    std::vector<float> run(count);
    std::vector<uint16_t> run_bf16(count);
    dequantize_four_bit(FourBit::kNf4, codes.data(), static_cast<int64_t>(first), scales.data() + first / 64,
                        std::span(run));
    dequantize_four_bit(FourBit::kNf4, codes.data(), static_cast<int64_t>(first), scales.data() + first / 64,
                        std::span(run_bf16));
    EXPECT_EQ(std::memcmp(run.data(), whole.data() + first, 4 * count), 0) << first;
    EXPECT_EQ(std::memcmp(run_bf16.data(), whole_bf16.data() + first, 2 * count), 0) << first;
  }
}

TEST(Quantized, ZerosStayZeros) {
  const std::vector<float> x(64);
  std::vector<std::byte> codes(32);
  std::vector<float> scales(1), values(64, 1.0F);
  for (const FourBit format : {FourBit::kNf4, FourBit::kFp4}) {
    quantize_four_bit(format, x, codes, scales);
    EXPECT_EQ(scales[0], 0);
    dequantize_four_bit(format, codes.data(), 0, scales.data(), std::span(values));
    EXPECT_EQ(values, x);
  }
}

TEST(Quantized, RowsOfInt8AreNearTheirNumbers) {
  const std::vector<float> x = made(40);
  std::vector<int8_t> codes(40);
  const float scale = bitsandbytes::quantize_int8_row(x, codes);
  std::vector<float> row(40);
  dequantize_row(reinterpret_cast<const std::byte*>(codes.data()), scale, std::span(row));
  for (size_t i = 0; i < 40; ++i) EXPECT_NEAR(row[i], x[i], scale / 254 + std::abs(x[i]) * 0x1p-10F) << i;
}

}  // namespace
}  // namespace plimsoll::numerics
