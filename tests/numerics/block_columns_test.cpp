// Blocks of columns against those of the transpose's rows.
#include "numerics/block_columns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "numerics/reference.h"

namespace plimsoll::numerics {
namespace {

/// Of many magnitudes, with zeros, subnormals, infinities and NaN here and there.
float some_number(int64_t i) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kOdd[] = {0, -0.0F, 1e-42F, kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()};
  if (i % 97 == 5) return kOdd[i / 97 % 6];
  const float size = std::ldexp(1.0F, static_cast<int>(i * 7 % 40) - 20);
  return size * (static_cast<float>(i * 2654435761U % 2000) / 1000 - 1);
}

void expect_the_transposes(Scheme scheme, int64_t rows, int64_t cols, int64_t width, const std::string& isa) {
  const auto at = [](int64_t i) { return static_cast<size_t>(i); };
  const int64_t stride = (cols + kColumnUnit - 1) / kColumnUnit * kColumnUnit, scale = scale_bytes(scheme);
  std::vector<float> x(at(rows * stride), std::nanf("")), turned(at(cols * width), 0);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c)
      x[at(r * stride + c)] = turned[at(c * width + r)] = c % 11 == 3 ? 0 : some_number(r * 131 + c * 17);
  std::vector<std::byte> expected(at(cols * width)), expected_scales(at(cols * scale));
  quantize(scheme, {}, turned, cols, width, expected, expected_scales);
  const int64_t code_stride = width + 3, scale_stride = scale + 1;
  std::vector<std::byte> codes(at(cols * code_stride), std::byte{0xAA}),
      scales(at(cols * scale_stride), std::byte{0xAA});
  std::vector<std::byte> room(at(stride * 128 + 64));
  const auto address = reinterpret_cast<uintptr_t>(room.data());
  quantize_columns(
      {scheme, x.data(), rows, cols, stride, width, codes.data(), code_stride, scales.data(), scale_stride},
      room.data() + (64 - address % 64) % 64);
  for (int64_t c = 0; c < cols; ++c) {
    const auto what = std::string(info(scheme).name) + ", " + isa + ", column " + std::to_string(c);
    for (int64_t r = 0; r < width; ++r)
      ASSERT_EQ(codes[at(c * code_stride + r)], expected[at(c * width + r)]) << what << ", row " << r;
    for (int64_t r = width; r < code_stride; ++r)
      ASSERT_EQ(codes[at(c * code_stride + r)], std::byte{0xAA}) << what;
    for (int64_t s = 0; s < scale; ++s)
      ASSERT_EQ(scales[at(c * scale_stride + s)], expected_scales[at(c * scale + s)]) << what;
    ASSERT_EQ(scales[at(c * scale_stride + scale)], std::byte{0xAA}) << what;
  }
}

TEST(BlockColumns, HaveTheBitsOfTheTranspose) {
  struct Case {
    int64_t rows, cols, width;
  };
  for (const Scheme scheme : {Scheme::kMxfp8, Scheme::kFp8Block1x128}) {
    const int64_t block = info(scheme).block_cols;
    EachTarget().run([&](const std::string& isa) {
      for (const Case& c : {Case{block, 64, block},
                            {block, 300, block},
                            {block, 512, block},
                            {1, 5, 1},
                            {7, 33, block},
                            {block - 3, 70, block - 3},
                            {block - 17, 130, block}})
        expect_the_transposes(scheme, c.rows, c.cols, c.width, isa);
    });
  }
}

}  // namespace
}  // namespace plimsoll::numerics
