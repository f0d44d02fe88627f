// Products of bf16 in strips: the plan's promises, and bits that do not depend on where operands lie: A read
// in place, packed in rows, packed as B; blocks from registers to C, and through scratch at the edges.
#include "backends/cpu/kernels/gemm/gemm_bf16_strips.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "backends/cpu/kernels/isa.h"

namespace plimsoll::cpu::bf16 {
namespace {

using ir::DType;

GemmArgs shape(int64_t m, int64_t n, int64_t k, int64_t segment = 0) {
  GemmArgs g{.m = m, .n = n, .k = k, .k_segment = segment, .precision = Precision::kBf16};
  g.a = {nullptr, k, 1, DType::kBf16};
  g.b = {nullptr, n, 1, DType::kBf16};
  return g;
}

TEST(StripPlan, FitsTheWorkspaceThatIsPlanned) {
  const int64_t sizes[] = {1, 31, 32, 33, 100, 576, 2048, 49152};
  for (const int64_t m : sizes)
    for (const int64_t n : sizes)
      for (const int64_t k : sizes)
        for (const int64_t segment : {0, 1, 300, 512})
          for (const DType a : {DType::kBf16, DType::kF32})
            for (const int threads : {1, 2, 7}) {
              GemmArgs g = shape(m, n, k, segment);
              g.a.dtype = a;
              const StripPlan p = strip_plan(g, threads);
              const int64_t line = p.run_steps * kStep * 2;
              const std::string what = std::to_string(m) + " " + std::to_string(n) + " " + std::to_string(k);
              ASSERT_GT(p.run_steps, 0) << what;
              ASSERT_TRUE(p.strip_lines > 0 && p.strip_lines % kPanel == 0) << what;
              ASSERT_TRUE(p.shared_lines > 0 && p.shared_lines % kPanel == 0) << what;
              ASSERT_LE(p.strip_lines * line + kBlockFloats * 4, thread_bytes(m, n, k)) << what;
              ASSERT_LE(p.a_in_place ? 0 : p.shared_lines * line, shared_bytes(m, n, k)) << what;
            }
}

TEST(StripPlan, ReadsInPlaceWhatTheKernelsCanRead) {
  EXPECT_TRUE(strip_plan(shape(512, 576, 1536), 2).a_in_place);
  EXPECT_TRUE(strip_plan(shape(512, 576, 1536, 512), 2).a_in_place);
  EXPECT_TRUE(strip_plan(shape(512, 576, 96, 100), 2).a_in_place);  // one segment
  EXPECT_FALSE(strip_plan(shape(512, 576, 1536, 300), 2).a_in_place);
  EXPECT_FALSE(strip_plan(shape(500, 576, 1536), 2).a_in_place);
  EXPECT_FALSE(strip_plan(shape(512, 576, 1530), 2).a_in_place);
  GemmArgs g = shape(512, 576, 1536);
  g.a.dtype = DType::kF32;
  EXPECT_FALSE(strip_plan(g, 2).a_in_place);
  g = shape(512, 576, 1536);
  g.a.row_stride = 1, g.a.col_stride = 512;
  EXPECT_FALSE(strip_plan(g, 2).a_in_place);
}

// Rounds of strips, times a strip, against panels shared out evenly.
TEST(StripPlan, ThreadsEndTogether) {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{512, 960, 576},
                                {512, 576, 576},
                                {512, 3072, 576},
                                {3072, 576, 512},
                                {512, 49152, 576}})
    for (const int threads : {1, 2, 4}) {
      const StripPlan p = strip_plan(shape(m, n, k), threads);
      const int64_t lines = p.private_a ? m : n, strips = div_up(lines, p.strip_lines);
      EXPECT_LE(static_cast<double>(div_up(strips, threads) * p.strip_lines * threads),
                1.12 * static_cast<double>(lines))
          << m << " " << n << " " << k << " " << threads;
    }
}

// Numbers of 8 bits, the same as bf16 and as f32.
float value(int64_t index) { return static_cast<float>(index * 37 % 251 - 125) / 64.0f; }

enum class StripLayout { kRows, kColumns, kStrided };

struct Matrix {
  DType dtype;
  int64_t row_stride, col_stride;
  std::vector<uint32_t> words;  // aligned

  Matrix(int64_t rows, int64_t columns, DType type, StripLayout layout) : dtype(type) {
    row_stride = layout == StripLayout::kRows      ? columns + 5
                 : layout == StripLayout::kColumns ? 1
                                                   : 2 * columns;
    col_stride = layout == StripLayout::kRows ? 1 : layout == StripLayout::kColumns ? rows + 3 : 2;
    words.resize(static_cast<size_t>(rows * row_stride + columns * col_stride));
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        const auto at = static_cast<size_t>(i * row_stride + j * col_stride);
        const auto bits = std::bit_cast<uint32_t>(value(i * 1009 + j));
        if (dtype == DType::kF32)
          words[at] = bits;
        else
          reinterpret_cast<uint16_t*>(words.data())[at] = static_cast<uint16_t>(bits >> 16);
      }
  }
  [[nodiscard]] ConstMatrix ref() const { return {words.data(), row_stride, col_stride, dtype}; }
};

struct StripCase {
  int64_t m, n, k, segment = 0;
  DType c = DType::kF32;
  bool accumulate = false, has_bias = false;
};

std::vector<float> run(const StripCase& x, const Matrix& a, const Matrix& b, int threads) {
  std::vector<float> c(static_cast<size_t>(x.m * x.n), 0.375f), bias(static_cast<size_t>(x.n));
  for (size_t j = 0; j < bias.size(); ++j) bias[j] = value(static_cast<int64_t>(j) + 7);
  GemmArgs g = shape(x.m, x.n, x.k, x.segment);
  g.a = a.ref(), g.b = b.ref();
  g.c = c.data(), g.c_row_stride = x.n, g.c_dtype = x.c;
  g.accumulate = x.accumulate;
  g.bias = x.has_bias ? bias.data() : nullptr;
  ThreadPool pool(threads);
  const int64_t bytes = gemm_workspace_bytes(x.m, x.n, x.k, threads, {g.precision, g.c_dtype});
  std::vector<std::byte> memory(static_cast<size_t>(bytes) + 64, std::byte{0xff});
  std::byte* aligned = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
  cpu::gemm(g, pool, {aligned, static_cast<size_t>(bytes)});
  return c;
}

constexpr StripCase kStripCases[] = {
    {.m = 64, .n = 96, .k = 160},
    {.m = 64, .n = 100, .k = 4192, .accumulate = true},  // several runs, columns at the edge
    {.m = 96, .n = 64, .k = 192, .segment = 64, .c = DType::kBf16, .has_bias = true},
    {.m = 70, .n = 130, .k = 96, .c = DType::kF16, .has_bias = true},
    {.m = 32, .n = 320, .k = 90, .segment = 45, .accumulate = true, .has_bias = true},
};

class StripGemm : public ::testing::Test {
 protected:
  void SetUp() override {
    if (best_isa() < Isa::kAvx512Bf16) GTEST_SKIP() << "this CPU has no AVX512_BF16";
    ASSERT_TRUE(select_isa("avx512_bf16").ok());
  }
  void TearDown() override { (void)select_isa(nullptr); }
};

TEST_F(StripGemm, BitsDoNotDependOnWhereOperandsLie) {
  constexpr std::pair<DType, StripLayout> kPlaces[] = {{DType::kBf16, StripLayout::kRows},
                                                       {DType::kF32, StripLayout::kRows},
                                                       {DType::kBf16, StripLayout::kColumns},
                                                       {DType::kF32, StripLayout::kColumns},
                                                       {DType::kBf16, StripLayout::kStrided}};
  for (const StripCase& x : kStripCases) {
    const auto expected = run(x, Matrix(x.m, x.k, DType::kF32, StripLayout::kStrided),
                              Matrix(x.k, x.n, DType::kF32, StripLayout::kStrided), 1);
    for (const auto& [a_dtype, a_layout] : kPlaces)
      for (const auto& [b_dtype, b_layout] : kPlaces)
        EXPECT_EQ(expected,
                  run(x, Matrix(x.m, x.k, a_dtype, a_layout), Matrix(x.k, x.n, b_dtype, b_layout), 2))
            << x.m << " " << x.n << " " << x.k << " " << static_cast<int>(a_layout)
            << static_cast<int>(b_layout);
  }
}

TEST_F(StripGemm, MultipliesWhatLiesInPlace) {
  const StripCase x{.m = 64, .n = 96, .k = 2112, .accumulate = true, .has_bias = true};
  const auto c = run(x, Matrix(x.m, x.k, DType::kBf16, StripLayout::kRows),
                     Matrix(x.k, x.n, DType::kBf16, StripLayout::kRows), 2);
  for (int64_t i = 0; i < x.m; ++i)
    for (int64_t j = 0; j < x.n; ++j) {
      double sum = 0.375 + static_cast<double>(value(j + 7));
      for (int64_t q = 0; q < x.k; ++q)
        sum += static_cast<double>(value(i * 1009 + q)) * static_cast<double>(value(q * 1009 + j));
      ASSERT_NEAR(c[static_cast<size_t>(i * x.n + j)], sum, 0.05) << i << " " << j;
    }
}

}  // namespace
}  // namespace plimsoll::cpu::bf16
