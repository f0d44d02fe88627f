// Blocks of bf16 numbers against what quantize() makes of the same numbers as f32.
#include "numerics/bf16_blocks.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "numerics/block_columns.h"
#include "numerics/reference.h"

namespace plimsoll::numerics {
namespace {

/// Whether the instruction set of this round decides by bits.
bool decides(const std::string& isa) { return isa == "best" && (hwy::SupportedTargets() & HWY_AVX3) != 0; }

struct Coded {
  std::vector<std::byte> codes, scales;
};

Coded by_way_of_f32(Scheme scheme, const std::vector<uint16_t>& x, int64_t cols) {
  std::vector<float> numbers(x.size());
  for (size_t i = 0; i < x.size(); ++i) numbers[i] = std::bit_cast<float>(uint32_t{x[i]} << 16);
  const int64_t rows = static_cast<int64_t>(x.size()) / cols;
  Coded c{std::vector<std::byte>(x.size()),
          std::vector<std::byte>(static_cast<size_t>(rows * scale_cols(scheme, cols) * scale_bytes(scheme)))};
  quantize(scheme, {}, numbers, rows, cols, c.codes, c.scales);
  return c;
}

/// Where bits alone decide there is nothing that differs; whether they did.
bool expect_the_same(Scheme scheme, const std::vector<uint16_t>& row, const std::string& what) {
  const Coded expected = by_way_of_f32(scheme, row, static_cast<int64_t>(row.size()));
  Coded got{std::vector<std::byte>(row.size()), std::vector<std::byte>(expected.scales.size())};
  if (!quantize_bf16_row(scheme, row, got.codes.data(), got.scales.data())) return false;
  EXPECT_EQ(got.scales, expected.scales) << what;
  for (size_t i = 0; i < row.size() && !testing::Test::HasFailure(); ++i)
    EXPECT_EQ(got.codes[i], expected.codes[i]) << what << ", number " << row[i] << " at " << i;
  return true;
}

/// A block whose largest number is `amax`, and numbers `step` apart below it.
std::vector<uint16_t> block_below(Scheme scheme, uint16_t amax, uint16_t step, uint16_t offset) {
  std::vector<uint16_t> block(static_cast<size_t>(info(scheme).block_cols));
  for (size_t i = 0; i < block.size(); ++i) {
    const int below = static_cast<int>(amax) - offset - static_cast<int>(i) * step;
    block[i] = static_cast<uint16_t>((below < 0 ? 0 : below) | (i % 2 == 0 ? 0x8000 : 0));
  }
  block[block.size() / 2] = amax;
  return block;
}

/// Every bf16 number as the largest of a block; all numbers near it, and down to where they vanish.
TEST(Bf16Blocks, EveryLargestNumber) {
  for (const Scheme scheme : {Scheme::kMxfp8, Scheme::kFp8Block1x128})
    EachTarget().run([&](const std::string& isa) {
      int64_t decided = 0;
      for (uint32_t amax = 0; amax < 0x8000 && !testing::Test::HasFailure(); ++amax)
        for (const uint16_t step : std::to_array<uint16_t>({1, 17, 83}))
          decided += expect_the_same(scheme, block_below(scheme, static_cast<uint16_t>(amax), step, step),
                                     isa + ", largest " + std::to_string(amax))
                         ? 1
                         : 0;
      EXPECT_EQ(decided > 80000, decides(isa)) << decided;
    });
}

/// Every number under one scale.
TEST(Bf16Blocks, EveryNumber) {
  for (const Scheme scheme : {Scheme::kMxfp8, Scheme::kFp8Block1x128})
    EachTarget().run([&](const std::string& isa) {
      for (const uint16_t amax : std::to_array<uint16_t>({0x3F80, 0x3FE0, 0x3FE1, 0x4800}))
        for (uint32_t first = 0; first <= amax; first += 100)
          expect_the_same(scheme, block_below(scheme, amax, 1, static_cast<uint16_t>(first)), isa);
    });
}

TEST(Bf16Blocks, LeavesWhatBitsDoNotDecide) {
  for (const uint16_t odd : std::to_array<uint16_t>({0x7F80, 0x7FC0, 0xFF80, 0xFFFF, 0x0001, 0x0400})) {
    std::vector<uint16_t> row(64, 0);
    row[40] = odd;
    std::vector<std::byte> codes(64), scales(2);
    EXPECT_FALSE(quantize_bf16_row(Scheme::kMxfp8, row, codes.data(), scales.data())) << odd;
  }
  std::vector<std::byte> codes(33), scales(2);
  EXPECT_FALSE(
      quantize_bf16_row(Scheme::kMxfp8, std::vector<uint16_t>(33, 0x3F80), codes.data(), scales.data()));
}

/// Of magnitudes that vary, some 0.
uint16_t small_number(int64_t i) {
  const uint64_t mixed = static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15U >> 40;
  return i % 53 == 7 ? 0 : static_cast<uint16_t>((0x3000 + mixed % 0x1000) | (mixed >> 9 & 0x8000));
}

void expect_the_turned(Scheme scheme, int64_t rows, int64_t cols, const std::string& isa) {
  const int64_t width = info(scheme).block_cols, row_stride = cols + 5, stride = (cols + 63) / 64 * 64;
  const auto at = [](int64_t i) { return static_cast<size_t>(i); };
  std::vector<uint16_t> x(at(rows * row_stride)), turned(at(cols * width), 0);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c)
      x[at(r * row_stride + c)] = turned[at(c * width + r)] =
          c % 37 == 4 ? 0 : small_number(r * 131 + c * 17);
  const Coded expected = by_way_of_f32(scheme, turned, width);
  Coded got{std::vector<std::byte>(turned.size()), std::vector<std::byte>(expected.scales.size())};
  std::vector<std::byte> room(at(stride * 128 + 64));
  const auto address = reinterpret_cast<uintptr_t>(room.data());
  const ColumnBlocks blocks{.scheme = scheme,
                            .rows = rows,
                            .cols = cols,
                            .stride = stride,
                            .width = width,
                            .codes = got.codes.data(),
                            .code_stride = width,
                            .scales = got.scales.data(),
                            .scale_stride = scale_bytes(scheme)};
  const bool decided =
      quantize_bf16_columns(blocks, x.data(), row_stride, room.data() + (64 - address % 64) % 64);
  EXPECT_EQ(decided, decides(isa) && cols % 32 == 0) << isa;
  if (!decided) return;
  EXPECT_EQ(got.codes, expected.codes) << isa << ", " << rows << " x " << cols;
  EXPECT_EQ(got.scales, expected.scales) << isa << ", " << rows << " x " << cols;
}

TEST(Bf16Blocks, OfColumns) {
  for (const Scheme scheme : {Scheme::kMxfp8, Scheme::kFp8Block1x128})
    EachTarget().run([&](const std::string& isa) {
      const int64_t block = info(scheme).block_cols;
      for (const int64_t rows : {block, block - 3, block - 16, int64_t{1}})
        for (const int64_t cols : {32, 64, 96, 256, 512, 33}) expect_the_turned(scheme, rows, cols, isa);
    });
}

}  // namespace
}  // namespace plimsoll::numerics
