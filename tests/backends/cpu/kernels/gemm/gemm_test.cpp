// gemm against an fp64 product, its contract on bits, its bounds in memory; on every instruction set of this
// CPU.
#include "backends/cpu/kernels/gemm/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "backends/cpu/kernels/isa.h"

namespace plimsoll::cpu {
namespace {

constexpr float kGuard = -12345.5f;

// Values in [-1, 1], different for each index and seed.
float value(int64_t index, uint64_t seed) {
  uint64_t x = static_cast<uint64_t>(index) * 0x9E3779B97F4A7C15u + seed * 0xBF58476D1CE4E5B9u + 1;
  x = (x ^ (x >> 31)) * 0x94D049BB133111EBu;
  return static_cast<float>(static_cast<int32_t>((x ^ (x >> 29)) >> 32)) * 0x1p-31f;
}

enum class Layout { kRows, kColumns, kStrided };  // which index is contiguous

// An operand with a gap behind each row, so that a row's end is not the next one's start.
struct Operand {
  std::vector<float> data;
  ConstMatrix view;
  Operand(int64_t rows, int64_t columns, Layout layout, uint64_t seed) {
    const int64_t gap = 3, s = layout == Layout::kStrided ? 2 : 1;
    const bool by_columns = layout == Layout::kColumns;
    const int64_t inner = by_columns ? rows : columns, outer = by_columns ? columns : rows;
    const int64_t outer_stride = inner * s + gap;
    data.assign(static_cast<size_t>(std::max<int64_t>(1, outer * outer_stride)),
                NAN);  // a gap that is read shows
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i)
        data[static_cast<size_t>(o * outer_stride + i * s)] = value(o * inner + i, seed);
    // No slack at the end, so that the address sanitizer sees a read beyond the last element.
    if (outer > 0 && inner > 0)
      data.resize(static_cast<size_t>((outer - 1) * outer_stride + (inner - 1) * s + 1)),
          data.shrink_to_fit();
    view = {data.data(), by_columns ? s : outer_stride, by_columns ? outer_stride : s};
  }
  double at(int64_t i, int64_t j) const {
    return data[static_cast<size_t>(i * view.row_stride + j * view.col_stride)];
  }
  ConstMatrix from(int64_t i, int64_t j) const {
    return {data.data() + i * view.row_stride + j * view.col_stride, view.row_stride, view.col_stride};
  }
};

struct Shape {
  int64_t m, n, k, segment = 0;
};

struct Call {
  Shape s;
  Layout a = Layout::kRows, b = Layout::kRows;
  bool accumulate = false, bias = false;
};

std::string describe(const Call& c) {
  const auto l = [](Layout x) { return std::to_string(static_cast<int>(x)); };
  return "m " + std::to_string(c.s.m) + " n " + std::to_string(c.s.n) + " k " + std::to_string(c.s.k) +
         " segment " + std::to_string(c.s.segment) + " a " + l(c.a) + " b " + l(c.b) +
         (c.accumulate ? " accumulate" : "") + (c.bias ? " bias" : "") + " " +
         std::string(isa_name(current_isa()));
}

// Runs gemm in an aligned workspace of exactly the planned size between guards.
void run_guarded(const GemmArgs& g, ThreadPool& pool) {
  const int64_t bytes = gemm_workspace_bytes(g.m, g.n, g.k, pool.num_threads());
  const auto floats = static_cast<size_t>(bytes / 4);
  std::vector<float> memory(floats + 64, kGuard);
  const auto skip = (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64 / 4 + 16;
  for (size_t i = 0; i < floats; ++i) memory[skip + i] = NAN;  // what it does not write it must not read
  gemm(g, pool, std::as_writable_bytes(std::span(memory).subspan(skip, floats)));
  EXPECT_EQ(bytes % 64, 0);
  for (size_t i = 0; i < skip; ++i) ASSERT_EQ(memory[i], kGuard) << "written before the workspace";
  for (size_t i = skip + floats; i < memory.size(); ++i) ASSERT_EQ(memory[i], kGuard) << "written behind it";
}

struct Problem {
  Call call;
  Operand a, b;
  std::vector<float> bias, c;
  int64_t stride;

  explicit Problem(const Call& x)
      : call(x), a(x.s.m, x.s.k, x.a, 1), b(x.s.k, x.s.n, x.b, 2), stride(x.s.n + 5) {
    for (int64_t j = 0; j < x.s.n; ++j) bias.push_back(value(j, 3));
    c.assign(static_cast<size_t>(x.s.m * stride), kGuard);
    for (int64_t i = 0; i < x.s.m; ++i)
      for (int64_t j = 0; j < x.s.n; ++j)
        c[static_cast<size_t>(i * stride + j)] = x.accumulate ? value(i + j, 4) : NAN;
  }
  GemmArgs args() {
    return {.m = call.s.m,
            .n = call.s.n,
            .k = call.s.k,
            .a = a.view,
            .b = b.view,
            .c = c.data(),
            .c_row_stride = stride,
            .k_segment = call.s.segment,
            .accumulate = call.accumulate,
            .bias = call.bias ? bias.data() : nullptr};
  }
};

// |error| <= (k + granules + 2) eps sum |a b|, the bound of a sum in any order.
void expect_close(const Problem& p, const std::vector<float>& before) {
  const auto& [m, n, k, segment] = p.call.s;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const auto at = static_cast<size_t>(i * p.stride + j);
      double sum = p.call.accumulate ? before[at] : 0.0, size = std::fabs(sum);
      for (int64_t q = 0; q < k; ++q)
        sum += p.a.at(i, q) * p.b.at(q, j), size += std::fabs(p.a.at(i, q) * p.b.at(q, j));
      if (p.call.bias)
        sum += p.bias[static_cast<size_t>(j)], size += std::fabs(p.bias[static_cast<size_t>(j)]);
      ASSERT_NEAR(p.c[at], sum, static_cast<double>(2 * k + 4) * 0x1p-24 * size + 1e-30) << i << "," << j;
    }
    for (int64_t j = n; j < p.stride; ++j)
      ASSERT_EQ(p.c[static_cast<size_t>(i * p.stride + j)], kGuard) << "written beside C";
  }
}

std::vector<float> compute(const Call& call, int threads) {
  SCOPED_TRACE(describe(call));
  Problem p(call);
  const std::vector<float> before = p.c;
  ThreadPool pool(threads);
  run_guarded(p.args(), pool);
  expect_close(p, before);
  return p.c;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Each test runs once per instruction set that the CPU has.
class Gemm : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (GetParam() > best_isa()) GTEST_SKIP() << "this CPU has no " << isa_name(GetParam());
    ASSERT_TRUE(select_isa(std::string(isa_name(GetParam())).c_str()).ok());
  }
  void TearDown() override { (void)select_isa(nullptr); }
};

INSTANTIATE_TEST_SUITE_P(Isas, Gemm, ::testing::Values(Isa::kPortable, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& test) { return std::string(isa_name(test.param)); });

TEST_P(Gemm, EverySmallShape) {
  for (const int64_t m : {1, 2, 5, 14, 15, 29})
    for (const int64_t n : {1, 3, 8, 15, 16, 17, 31, 32, 33, 50})
      for (const int64_t k : {1, 3, 4, 6, 17}) compute({.s = {m, n, k}}, 1);
}

TEST_P(Gemm, EveryLayout) {
  const Layout all[] = {Layout::kRows, Layout::kColumns, Layout::kStrided};
  for (const Layout a : all)
    for (const Layout b : all)
      for (const Shape& s : {Shape{31, 41, 35}, Shape{17, 64, 300}, Shape{3, 5, 7}, Shape{60, 1, 259}})
        compute({.s = s, .a = a, .b = b, .bias = true}, 2);
}

TEST_P(Gemm, BiasAndAccumulate) {
  for (const bool bias : {false, true})
    for (const bool accumulate : {false, true})
      for (const int64_t k : {0, 5, 256, 257, 600})
        compute({.s = {19, 37, k}, .accumulate = accumulate, .bias = bias}, 1);
}

TEST_P(Gemm, StridesThatCollideInTheCache) {
  for (const int64_t k : {512 - 3, 1024 - 3}) compute({.s = {40, 33, k}, .b = Layout::kColumns}, 1);
}

TEST_P(Gemm, ManyTiles) {
  compute({.s = {300, 520, 64}, .b = Layout::kColumns}, 2);
  compute({.s = {1100, 40, 33}, .a = Layout::kColumns}, 3);
  compute({.s = {14, 1500, 70}, .b = Layout::kColumns}, 2);
  compute({.s = {14, 1561, 270}, .b = Layout::kColumns}, 2);  // columns by thread
}

TEST_P(Gemm, Empty) {
  ThreadPool pool(2);
  gemm({.m = 0, .n = 4, .k = 4}, pool, {});
  gemm({.m = 4, .n = 0, .k = 4}, pool, {});
}

TEST_P(Gemm, SameBitsForAnyNumberOfThreads) {
  const Call calls[] = {{.s = {300, 200, 300}, .b = Layout::kColumns, .bias = true},
                        {.s = {250, 130, 51, 17}, .a = Layout::kColumns, .accumulate = true},
                        {.s = {257, 96, 700, 350}, .a = Layout::kColumns},
                        {.s = {90, 1561, 300}, .b = Layout::kColumns, .bias = true},
                        {.s = {23, 1700, 300, 70}, .accumulate = true},
                        {.s = {23, 1700, 300, 70}, .b = Layout::kStrided},
                        {.s = {70, 900, 700, 450}, .accumulate = true, .bias = true},
                        {.s = {9, 2600, 513}, .a = Layout::kColumns},
                        {.s = {4101, 50, 300, 150}, .b = Layout::kColumns, .bias = true}};
  for (const Call& call : calls) {
    const auto one = compute(call, 1);
    for (const int threads : {2, 3, 8})
      EXPECT_TRUE(same_bits(one, compute(call, threads))) << describe(call) << threads;
  }
}

TEST_P(Gemm, SameBitsHoweverMAndNAreSplit) {
  for (const Layout layout : {Layout::kRows, Layout::kColumns}) {
    Problem whole({.s = {71, 150, 530, 265}, .a = layout, .b = layout, .bias = true}), parts(whole.call);
    ThreadPool pool(2);
    run_guarded(whole.args(), pool);
    for (const auto& [i0, i1] : {std::pair{0, 1}, {1, 30}, {30, 71}})
      for (const auto& [j0, j1] : {std::pair{0, 33}, {33, 34}, {34, 150}}) {
        GemmArgs g = parts.args();
        g.m = i1 - i0, g.n = j1 - j0;
        g.a = parts.a.from(i0, 0);
        g.b = parts.b.from(0, j0);
        g.c = parts.c.data() + i0 * g.c_row_stride + j0;
        g.bias = parts.bias.data() + j0;
        run_guarded(g, pool);
      }
    EXPECT_TRUE(same_bits(whole.c, parts.c));
  }
}

// Micro-batches: the sum over three sequences, in one call or in three that continue one another.
TEST_P(Gemm, SameBitsWhenKIsSplitAtSegments) {
  for (const int64_t t : {17, 256, 300}) {
    const Call call{.s = {45, 70, 3 * t, t}, .a = Layout::kColumns};
    const auto whole = compute(call, 2);
    Problem parts(call);
    ThreadPool pool(2);
    for (int64_t s = 0; s < 3; ++s) {
      GemmArgs g = parts.args();
      g.k = t;
      g.a = parts.a.from(0, s * t);
      g.b = parts.b.from(s * t, 0);
      g.accumulate = s > 0;
      run_guarded(g, pool);
    }
    EXPECT_TRUE(same_bits(whole, parts.c)) << t;
  }
}

// The contract to the letter: granules of 256 from zero, restarting with each segment, each added to C in
// order, then the bias.
float by_contract(const Problem& p, int64_t i, int64_t j, bool fused) {
  const Shape& s = p.call.s;
  const int64_t segment = s.segment > 0 ? s.segment : s.k;
  float c = 0;
  for (int64_t start = 0; start < s.k; start += segment) {
    const int64_t end = std::min(s.k, start + segment);
    for (int64_t from = start; from < end; from += 256) {
      float sum = 0;
      for (int64_t q = from; q < std::min(end, from + 256); ++q) {
        const auto x = static_cast<float>(p.a.at(i, q)), y = static_cast<float>(p.b.at(q, j));
        sum = fused ? std::fma(x, y, sum) : x * y + sum;
      }
      c = from == 0 ? sum : c + sum;
    }
  }
  return p.call.bias ? c + p.bias[static_cast<size_t>(j)] : c;
}

TEST_P(Gemm, ContractOnOrder) {
  Problem p({.s = {5, 37, 900, 300}, .b = Layout::kColumns, .bias = true});
  ThreadPool pool(1);
  run_guarded(p.args(), pool);
  for (int64_t i = 0; i < p.call.s.m; ++i)
    for (int64_t j = 0; j < p.call.s.n; ++j)
      ASSERT_EQ(p.c[static_cast<size_t>(i * p.stride + j)],
                by_contract(p, i, j, GetParam() != Isa::kPortable))
          << i << "," << j;
}

// Larger than one block in rows, columns and k, on every path of the packing.
TEST_P(Gemm, ManyBlocks) {
  const Call calls[] = {
      {.s = {700, 1100, 1030}, .a = Layout::kRows, .b = Layout::kColumns},
      {.s = {1101, 1105, 1030, 515}, .a = Layout::kColumns, .b = Layout::kRows, .bias = true},
      {.s = {101, 1300, 1030, 515}, .a = Layout::kColumns, .b = Layout::kRows, .bias = true},
      {.s = {101, 1650, 1030}, .a = Layout::kRows, .b = Layout::kColumns, .bias = true},
      {.s = {4103, 310, 1030, 515}, .a = Layout::kRows, .b = Layout::kColumns, .bias = true},
      {.s = {4103, 70, 40}, .a = Layout::kColumns, .b = Layout::kRows},
      {.s = {70, 70, 8300, 830}, .a = Layout::kColumns, .b = Layout::kRows}};
  for (const Call& call : calls) {
    Problem p(call);
    ThreadPool pool(3);
    run_guarded(p.args(), pool);
    for (int64_t i = 0; i < call.s.m; i += i + 45 < call.s.m ? 45 : 1)
      for (int64_t j = i % 31; j < call.s.n; j += 31)
        ASSERT_EQ(p.c[static_cast<size_t>(i * p.stride + j)],
                  by_contract(p, i, j, GetParam() != Isa::kPortable))
            << describe(call) << ": " << i << "," << j;
  }
}

TEST_P(Gemm, NanAndInfinityPassThrough) {
  Problem p({.s = {3, 40, 20}});
  p.a.data[4] = INFINITY;
  p.b.data[39] = NAN;
  ThreadPool pool(1);
  run_guarded(p.args(), pool);
  EXPECT_TRUE(std::isinf(p.c[0]));
  EXPECT_TRUE(std::isnan(p.c[39]));
  EXPECT_TRUE(std::isfinite(p.c[static_cast<size_t>(p.stride)]));
}

// Every call above had exactly the planned workspace; here, that it stays small.
TEST(GemmWorkspace, IsBounded) {
  EXPECT_EQ(gemm_workspace_bytes(49152, 49152, 49152, 1), 6 << 20);
  EXPECT_EQ(gemm_workspace_bytes(49152, 49152, 49152, 8), 6 << 20);
  EXPECT_LE(gemm_workspace_bytes(1, 1, 1, 1), 512);
  EXPECT_EQ(gemm_workspace_bytes(4, 4, 0, 1), 0);
}

}  // namespace
}  // namespace plimsoll::cpu
