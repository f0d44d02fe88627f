// Matrix products in TF32 on the host: fragments as NVIDIA's PTX ISA numbers them ("Matrix fragments for
// mma.m16n8k8"), rounding, and tiles as attention has them, against plain products.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#define TWIN_SECTION "mma_tf32_test"
#include "backends/cuda/twin/cuda_builtins.h"
#include "backends/cuda/twin/kernel.h"

namespace {

#include "backends/cuda/device/mma.cuh"
#include "backends/cuda/device/probe.h"
#include "backends/cuda/kernels/attention/mma_products.cuh"

using namespace plimsoll::cuda;

/// m16n8k8 with .tf32: (row of a, its column) = (groupID or + 8, threadID_in_group or + 4), and b's likewise.
void multiply_tf32_by_the_manual(Probe p) {
  const int group = static_cast<int>(threadIdx.x) >> 2, thread = static_cast<int>(threadIdx.x) % 4;
  u32 a[4], b[2];
  float d[4] = {};
  for (int i = 0; i < 4; ++i) {
    const int row = i == 0 || i == 2 ? group : group + 8, column = i < 2 ? thread : thread + 4;
    a[i] = tf32_word(p.a[row * 8 + column]);
  }
  for (int i = 0; i < 2; ++i) b[i] = tf32_word(p.b[(i == 0 ? thread : thread + 4) * 8 + group]);
  mma<kF32>(d, a, b[0], b[1]);
  for (int i = 0; i < 4; ++i) p.d[(i < 2 ? group : group + 8) * 8 + thread * 2 + (i & 1)] = d[i];
}

TEST(Mma, FragmentsOfTf32AreTheManuals) {
  const std::vector<float> a = numbers(16 * 8, 1), b = numbers(8 * 8, 2);
  std::vector<float> d(16 * 8);
  run<multiply_tf32_by_the_manual>({a.data(), b.data(), d.data()});
  EXPECT_EQ(d, product(a, b, 16, 8, 8, false));
}

void multiply_what_is_not_rounded(Probe p) {
  const u32 one = __float_as_uint(1.0f), finer = __float_as_uint(p.a[0]), a[4] = {one, one, one, one};
  float d[4] = {};
  mma<kF32>(d, a, threadIdx.x == 0 ? finer : one, one);
  p.d[threadIdx.x] = d[0];
}

TEST(Mma, OperandsThatAreNotRoundedToTf32AreFound) {
  const float finer = 1 + 0x1p-12f, rounded = 1 + 0x1p-10f;
  float d[32];
  run<multiply_what_is_not_rounded>({&finer, nullptr, d});
  EXPECT_TRUE(std::isnan(d[0]));
  EXPECT_EQ(d[1], 8);
  run<multiply_what_is_not_rounded>({&rounded, nullptr, d});
  EXPECT_EQ(d[0], 8 + 0x1p-10f);
}

TEST(Mma, Tf32RoundsToNearestEven) {
  EXPECT_EQ(rounded_to_tf32(1 + 0x1p-11f), 1);
  EXPECT_EQ(rounded_to_tf32(1 + 0x3p-11f), 1 + 0x1p-9f);
  EXPECT_EQ(rounded_to_tf32(-1 - 0x1.8p-11f), -1 - 0x1p-10f);
  EXPECT_EQ(rounded_to_tf32(0x1.fffffep127f), INFINITY);
  EXPECT_TRUE(std::isnan(rounded_to_tf32(__uint_as_float(0x7fffffffu))));
}

/// x [16, kWidth] times the rows of y [kRows, kWidth], then times y itself, in TF32, by way of tiles: results
/// where column_of says, and where put_rows has written them.
template <int kWidth, int kRows>
void multiply_tf32_tiles(Probe p) {
  constexpr int kRow = 4 * kWidth;
  const SharedAt x = shared_at(twin::dynamic_shared()), y = x + 16 * kRow;
  const Rows<kF32> of_x{(u32*)p.a, kWidth, 16, kWidth, true}, of_y{(u32*)p.b, kWidth, kRows, kWidth, true};
  for (int column = 0; column < kRow / 16; column += 32) {
    const int chunk = column + static_cast<int>(threadIdx.x);
    if (chunk >= kRow / 16) continue;
    for (int row = 0; row < 16; ++row)
      shared_store16(x + tile_offset<kRow>(row, chunk), load_part(of_x.data + row * kWidth + 4 * chunk, 4));
    for (int row = 0; row < kRows; ++row)
      shared_store16(y + tile_offset<kRow>(row, chunk), load_part(of_y.data + row * kWidth + 4 * chunk, 4));
  }
  __syncwarp();
  float s[1][kRows / 8][4], o[1][kWidth / 8][4] = {};
  multiply_rows<kF32, kWidth>(x, 0, y, s);
  add_weighted<kF32, kWidth>(s, y, 0, o);
  __syncwarp();
  put_rows<kF32, kWidth>(x, 0, 0, o[0], 1, 1);
  __syncwarp();
  const int g = static_cast<int>(threadIdx.x) / 4;
  for (int n = 0; n < kWidth / 8; ++n)
    for (int e = 0; e < 4; ++e) {
      const int row = g + e / 2 * 8, column = column_of<kF32>(n, e);
      const float written = *(const float*)(x + tile_offset<kRow>(row, column / 4) + column % 4 * 4);
      p.d[row * kWidth + column] = written == o[0][n][e] ? written : NAN;
    }
}

template <int kWidth, int kRows>
void expect_tf32_tiles() {
  std::vector<float> x = numbers(16 * kWidth, 3), y = numbers(kRows * kWidth, 4), d(16 * kWidth);
  for (size_t i = 0; i < x.size(); ++i) x[i] = i % 9 == 0 ? x[i] : 0.0f;  // scores that TF32 holds
  run<multiply_tf32_tiles<kWidth, kRows>>({x.data(), y.data(), d.data()});
  EXPECT_EQ(d, product(product(x, y, 16, kRows, kWidth, true), y, 16, kWidth, kRows, false));
}

TEST(Mma, TilesInTf32GiveProductsOfRowsAndOfColumns) {
  expect_tf32_tiles<64, 32>();
  expect_tf32_tiles<128, 16>();
  expect_tf32_tiles<256, 8>();
}

}  // namespace
