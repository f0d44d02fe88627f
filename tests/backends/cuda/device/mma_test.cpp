// The host's side of matrix instructions: fragments as NVIDIA's PTX ISA numbers them ("Matrix fragments for
// mma.m16n8k16", "ldmatrix"), against plain products; copies that arrive late. mma_tf32_test.cpp has TF32.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#define TWIN_SECTION "mma_test"
#include "backends/cuda/twin/cuda_builtins.h"
#include "backends/cuda/twin/kernel.h"

namespace {

#include "backends/cuda/device/async.cuh"
#include "backends/cuda/device/mma.cuh"
#include "backends/cuda/device/probe.h"
#include "backends/cuda/kernels/attention/mma_products.cuh"

using namespace plimsoll::cuda;

template <int kType>
u32 pair_of(float low, float high) {
  return pack_rounded<kType>(low, high);
}

template <int kType>
void multiply_by_the_manual(Probe p) {
  const int group = static_cast<int>(threadIdx.x) >> 2, thread = static_cast<int>(threadIdx.x) % 4;
  float of_a[8], of_b[4], d[4] = {};
  for (int i = 0; i < 8; ++i) {
    const int row = i < 2 || (i >= 4 && i < 6) ? group : group + 8;
    of_a[i] = p.a[row * 16 + thread * 2 + (i & 1) + (i >= 4 ? 8 : 0)];
  }
  for (int i = 0; i < 4; ++i) of_b[i] = p.b[(thread * 2 + (i & 1) + (i >= 2 ? 8 : 0)) * 8 + group];
  const u32 a[4] = {pair_of<kType>(of_a[0], of_a[1]), pair_of<kType>(of_a[2], of_a[3]),
                    pair_of<kType>(of_a[4], of_a[5]), pair_of<kType>(of_a[6], of_a[7])};
  mma<kType>(d, a, pair_of<kType>(of_b[0], of_b[1]), pair_of<kType>(of_b[2], of_b[3]));
  for (int i = 0; i < 4; ++i) p.d[(i < 2 ? group : group + 8) * 8 + thread * 2 + (i & 1)] = d[i];
}

TEST(Mma, FragmentsAreTheManuals) {
  const std::vector<float> a = numbers(16 * 16, 1), b = numbers(16 * 8, 2);
  std::vector<float> d(16 * 8);
  run<multiply_by_the_manual<kBf16>>({a.data(), b.data(), d.data()});
  EXPECT_EQ(d, product(a, b, 16, 8, 16, false));
  d.assign(d.size(), 0);
  run<multiply_by_the_manual<kF16>>({a.data(), b.data(), d.data()});
  EXPECT_EQ(d, product(a, b, 16, 8, 16, false));
}

/// Row r of matrix m holds 64 m + 8 r + column; lanes give the rows' addresses in a mixed order of memory.
template <bool kTransposed>
void read_matrices(Probe p) {
  unsigned char* shared = static_cast<unsigned char*>(twin::dynamic_shared());
  const int lane = static_cast<int>(threadIdx.x), place = (lane * 5 + 3) % 32;
  auto* row = reinterpret_cast<u16*>(shared + 16 * place);
  for (int c = 0; c < 8; ++c) row[c] = static_cast<u16>(8 * lane + c);
  __syncwarp();
  u32 d[4];
  if constexpr (kTransposed)
    load_matrices_transposed(d, shared_at(row));
  else
    load_matrices(d, shared_at(row));
  for (int m = 0; m < 4; ++m)
    for (int e = 0; e < 2; ++e)
      p.d[(m * 32 + lane) * 2 + e] = static_cast<float>(e == 0 ? d[m] & 0xffffu : d[m] >> 16);
}

TEST(Mma, MatricesAreReadAsTheManualSays) {
  std::vector<float> plain(4 * 64), transposed(4 * 64);
  run<read_matrices<false>>({nullptr, nullptr, plain.data()});
  run<read_matrices<true>>({nullptr, nullptr, transposed.data()});
  for (int m = 0; m < 4; ++m)
    for (int lane = 0; lane < 32; ++lane)
      for (int e = 0; e < 2; ++e) {
        const auto at = static_cast<size_t>((m * 32 + lane) * 2 + e);
        const int row = lane / 4, column = lane % 4 * 2 + e;
        EXPECT_EQ(plain[at], static_cast<float>(64 * m + 8 * row + column));
        EXPECT_EQ(transposed[at], static_cast<float>(64 * m + 8 * column + row));
      }
}

/// x [16, 64] times the rows of y [16, 64], then times y itself, by way of tiles as attention has them.
void multiply_tiles(Probe p) {
  const SharedAt x = shared_at(twin::dynamic_shared()), y = x + 16 * 128;
  for (int at = static_cast<int>(threadIdx.x); at < 16 * 8; at += 32) {
    u16 of_x[8], of_y[8];
    for (int e = 0; e < 8; ++e) of_x[e] = to_bf16(p.a[at * 8 + e]), of_y[e] = to_bf16(p.b[at * 8 + e]);
    shared_store16(x + tile_offset<128>(at / 8, at % 8), load_part(of_x, 8));
    shared_store16(y + tile_offset<128>(at / 8, at % 8), load_part(of_y, 8));
  }
  __syncwarp();
  float s[1][2][4], o[1][8][4] = {};
  multiply_rows<kBf16, 64>(x, 0, y, s);
  add_weighted<kBf16, 64>(s, y, 0, o);
  const int g = static_cast<int>(threadIdx.x) / 4, t = static_cast<int>(threadIdx.x) % 4;
  for (int n = 0; n < 8; ++n)
    for (int e = 0; e < 4; ++e) p.d[(g + e / 2 * 8) * 64 + 8 * n + 2 * t + e % 2] = o[0][n][e];
}

TEST(Mma, TilesGiveProductsOfRowsAndOfColumns) {
  std::vector<float> x = numbers(16 * 64, 3), y = numbers(16 * 64, 4), d(16 * 64);
  for (float& v : x) v = v > 6 ? 1.0f : 0.0f;  // scores that bf16 holds
  run<multiply_tiles>({x.data(), y.data(), d.data()});
  EXPECT_EQ(d, product(product(x, y, 16, 16, 64, true), y, 16, 64, 16, false));
}

/// Of two groups the first is waited for: d holds what was seen of each before and after, and of zeros.
void copy_late(Probe p) {
  const SharedAt shared = shared_at(twin::dynamic_shared());
  const auto* place = reinterpret_cast<const float*>(shared);
  if (threadIdx.x == 0) {
    async_copy16(shared, p.a, true);
    async_close();
    async_copy16(shared + 16, p.a + 4, true);
    async_copy4(shared + 32, p.a, false);
    async_close();
    p.d[0] = place[0];
    async_wait<1>();
    p.d[1] = place[0], p.d[2] = place[4];
    async_wait<0>();
    p.d[3] = place[4], p.d[4] = place[8];
  }
}

void forgets_to_wait(Probe p) {
  if (threadIdx.x != 7) twin::begin_grid();
  p.d[threadIdx.x] = 1;
}

TEST(Grids, ThatMayComeEarlyWaitInEachThread) {
  static char none[1];
  float d[32];
  const Probe probe{nullptr, nullptr, d};
  void* arguments[] = {const_cast<Probe*>(&probe)};
  const twin::Kernel kernel{
      "probe", 32, twin::Call<forgets_to_wait>::sizes, twin::Call<forgets_to_wait>::run, none, none};
  EXPECT_EQ(twin::run_grid(kernel, {}, {32}, 0, arguments, false), "");
  EXPECT_NE(twin::run_grid(kernel, {}, {32}, 0, arguments, true), "");
}

TEST(AsyncCopies, ArriveWhenTheirGroupIsWaitedFor) {
  alignas(16) const float from[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  float d[5];
  run<copy_late>({from, nullptr, d});
  EXPECT_TRUE(std::isnan(d[0]));
  EXPECT_EQ(d[1], 1);
  EXPECT_TRUE(std::isnan(d[2]));
  EXPECT_EQ(d[3], 5);
  EXPECT_EQ(d[4], 0);
}

}  // namespace
