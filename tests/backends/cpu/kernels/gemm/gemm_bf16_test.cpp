// gemm in every precision and dtype: against an fp64 product of the rounded operands, and its contract on
// bits; on every instruction set of this CPU.
#include "backends/cpu/kernels/gemm/gemm_bf16.h"

#include <gtest/gtest.h>
#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "backends/cpu/kernels/gemm/gemm.h"
#include "backends/cpu/kernels/isa.h"

namespace plimsoll::cpu::bf16 {
namespace {

using ir::DType;

constexpr Precision kPrecisions[] = {Precision::kF32, Precision::kTf32, Precision::kBf16, Precision::kF16};
constexpr DType kDTypes[] = {DType::kF32, DType::kBf16, DType::kF16};

// Rounds to nearest even after `bits` of mantissa, exponents unbounded: by adding and subtracting what
// pushes the rest out of a double.
double to_mantissa(double x, int bits) {
  if (x == 0) return x;
  const double quantum = std::ldexp(1.0, std::ilogb(x) - bits);
  return std::nearbyint(x / quantum) * quantum;
}
double rounded_operand(double x, DType dtype) {
  return dtype == DType::kBf16 ? to_mantissa(x, 7) : dtype == DType::kF16 ? to_mantissa(x, 10) : x;
}
double rounded_operand(double x, Precision p) {
  return p == Precision::kF32 ? x : to_mantissa(x, p == Precision::kBf16 ? 7 : 10);
}

void write(double value, DType dtype, std::byte* to) {
  const auto f = static_cast<float>(value);
  const auto bf16 = static_cast<uint16_t>(std::bit_cast<uint32_t>(f) >> 16);
  const auto f16 = std::bit_cast<uint16_t>(static_cast<_Float16>(f));
  if (dtype == DType::kF32)
    std::memcpy(to, &f, 4);
  else
    std::memcpy(to, dtype == DType::kBf16 ? &bf16 : &f16, 2);
}
double read(const std::byte* from, DType dtype) {
  uint32_t bits = 0;
  std::memcpy(&bits, from, dtype == DType::kF32 ? 4 : 2);
  if (dtype == DType::kF16) return static_cast<double>(std::bit_cast<_Float16>(static_cast<uint16_t>(bits)));
  return static_cast<double>(std::bit_cast<float>(dtype == DType::kBf16 ? bits << 16 : bits));
}
size_t size_of(DType dtype) { return dtype == DType::kF32 ? 4 : 2; }

// Values in [-1, 1] of 24 bits, so that each rounding shows, a few of them ties.
double value(int64_t index, uint64_t seed) {
  uint64_t x = static_cast<uint64_t>(index) * 0x9E3779B97F4A7C15u + seed * 0xBF58476D1CE4E5B9u + 1;
  x = (x ^ (x >> 31)) * 0x94D049BB133111EBu;
  const double v = static_cast<double>(static_cast<int32_t>((x ^ (x >> 29)) >> 32)) * 0x1p-31;
  return index % 11 == 0   ? to_mantissa(v, 8)
         : index % 13 == 0 ? to_mantissa(v, 11)
                           : static_cast<double>(static_cast<float>(v));
}

enum class Layout { kRows, kColumns, kStrided };

// Gaps and what lies behind the last element hold NaN or are not there.
struct Operand {
  DType dtype;
  int64_t row_stride, col_stride;
  std::vector<std::byte> bytes;

  Operand(int64_t rows, int64_t columns, DType type, Layout layout, uint64_t seed) : dtype(type) {
    const int64_t s = layout == Layout::kStrided ? 2 : 1;
    col_stride = layout == Layout::kColumns ? rows + 3 : s;
    row_stride = layout == Layout::kColumns ? 1 : columns * s + 3;
    bytes.assign(
        static_cast<size_t>((rows - 1) * row_stride + (columns - 1) * col_stride + 1) * size_of(type),
        std::byte{0xff});
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        write(rounded_operand(value(i * columns + j, seed), type), type, at(i, j));
  }
  std::byte* at(int64_t i, int64_t j) {
    return bytes.data() + static_cast<size_t>(i * row_stride + j * col_stride) * size_of(dtype);
  }
  double operator()(int64_t i, int64_t j) const { return read(const_cast<Operand*>(this)->at(i, j), dtype); }
  ConstMatrix from(int64_t i, int64_t j) { return {at(i, j), row_stride, col_stride, dtype}; }
};

struct Call {
  int64_t m, n, k, segment = 0;
  Precision precision = Precision::kBf16;
  DType a = DType::kBf16, b = DType::kBf16, c = DType::kF32, bias = DType::kF32;
  Layout a_layout = Layout::kRows, b_layout = Layout::kRows;
  bool has_bias = false, accumulate = false;
};

std::string describe(const Call& x) {
  const auto s = [](auto v) { return " " + std::to_string(static_cast<int64_t>(v)); };
  return "m n k segment" + s(x.m) + s(x.n) + s(x.k) + s(x.segment) + " precision a b c" + s(x.precision) +
         s(x.a) + s(x.b) + s(x.c) + " layouts" + s(x.a_layout) + s(x.b_layout) + " bias" + s(x.has_bias) +
         s(x.bias) + " accumulate" + s(x.accumulate) + " " + std::string(isa_name(current_isa()));
}

constexpr std::byte kGuard{0xab};

// Runs in an aligned workspace of exactly the planned size, full of NaN, between guards.
void run_guarded(const GemmArgs& g, ThreadPool& pool) {
  const int64_t planned = gemm_workspace_bytes(g.m, g.n, g.k, pool.num_threads(), {g.precision, g.c_dtype});
  ASSERT_TRUE(planned >= 0 && planned % 64 == 0) << planned;
  const auto bytes = static_cast<size_t>(planned);
  std::vector<std::byte> memory;
  memory.resize(static_cast<size_t>(planned + 256), kGuard);
  const size_t skip = 64 + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
  const auto workspace = std::span(memory).subspan(skip, bytes);
  for (std::byte& b : workspace) b = std::byte{0xff};
  gemm(g, pool, workspace);
  const auto guards = [&](size_t begin, size_t end) {
    return std::all_of(memory.data() + begin, memory.data() + end, [](std::byte b) { return b == kGuard; });
  };
  ASSERT_TRUE(guards(0, skip) && guards(skip + bytes, memory.size())) << "written beside the workspace";
}

struct Problem {
  Call call;
  Operand a, b, bias, c;

  explicit Problem(const Call& x)
      : call(x),
        a(x.m, x.k, x.a, x.a_layout, 1),
        b(x.k, x.n, x.b, x.b_layout, 2),
        bias(1, x.n, x.bias, Layout::kRows, 3),
        c(x.m, x.n, x.c, Layout::kRows, 4) {}
  GemmArgs args() {
    GemmArgs g{.m = call.m, .n = call.n, .k = call.k, .a = a.from(0, 0), .b = b.from(0, 0)};
    g.c = c.bytes.data();
    g.c_row_stride = c.row_stride;
    g.c_dtype = call.c;
    g.k_segment = call.segment;
    g.accumulate = call.accumulate;
    g.bias = call.has_bias ? bias.bytes.data() : nullptr;
    g.bias_dtype = call.bias;
    g.precision = call.precision;
    return g;
  }
  std::vector<std::byte> run(int threads) {
    ThreadPool pool(threads);
    run_guarded(args(), pool);
    return c.bytes;
  }
};

// The operand as the product sees it, k side by side.
std::vector<double> rounded_lines(const Operand& x, int64_t lines, int64_t k, bool of_b,
                                  Precision precision) {
  std::vector<double> values;
  for (int64_t i = 0; i < lines; ++i)
    for (int64_t q = 0; q < k; ++q) values.push_back(rounded_operand(of_b ? x(q, i) : x(i, q), precision));
  return values;
}

// Every element of a small C, some of a large one.
void expect_close(const Problem& p, const Operand& before) {
  const Call& x = p.call;
  const auto a = rounded_lines(p.a, x.m, x.k, false, x.precision),
             b = rounded_lines(p.b, x.n, x.k, true, x.precision);
  const double ulp = x.c == DType::kF32 ? 0 : x.c == DType::kBf16 ? 0x1p-8 : 0x1p-11;
  const int64_t step = x.m * x.n * x.k > 1 << 20 ? 7 : 1;
  for (int64_t at = 0; at < x.m * x.n; at += step) {
    const int64_t i = at / x.n, j = at % x.n;
    double sum = x.accumulate ? before(i, j) : 0.0, size = std::fabs(sum);
    for (int64_t q = 0; q < x.k; ++q) {
      const double product = a[static_cast<size_t>(i * x.k + q)] * b[static_cast<size_t>(j * x.k + q)];
      sum += product, size += std::fabs(product);
    }
    if (x.has_bias) sum += p.bias(0, j), size += std::fabs(p.bias(0, j));
    ASSERT_NEAR(p.c(i, j), sum,
                static_cast<double>(2 * x.k + 4) * 0x1p-24 * size + std::fabs(sum) * ulp + 1e-7)
        << i << "," << j << " " << describe(x);
  }
}

void expect_gap_untouched(Problem& p) {
  for (int64_t i = 0; i + 1 < p.call.m; ++i)
    for (size_t g = 0; g < 3 * size_of(p.call.c); ++g)
      ASSERT_EQ(p.c.at(i, p.call.n)[g], std::byte{0xff}) << "written beside C " << describe(p.call);
}

std::vector<std::byte> compute(const Call& call, int threads = 1) {
  Problem p(call);
  const Operand before = p.c;
  p.run(threads);
  expect_close(p, before);
  expect_gap_untouched(p);
  return p.c.bytes;
}

constexpr Isa kIsas[] = {Isa::kPortable, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16, Isa::kAmx};

class GemmPrecision : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (GetParam() > best_isa()) GTEST_SKIP() << "this CPU has no " << isa_name(GetParam());
    ASSERT_TRUE(select_isa(std::string(isa_name(GetParam())).c_str()).ok());
  }
  void TearDown() override { (void)select_isa(nullptr); }
};

INSTANTIATE_TEST_SUITE_P(Isas, GemmPrecision, ::testing::ValuesIn(kIsas),
                         [](const auto& test) { return std::string(isa_name(test.param)); });

TEST_P(GemmPrecision, EveryDTypeAndPrecision) {
  for (const Precision precision : kPrecisions)
    for (const DType a : kDTypes)
      for (const DType b : kDTypes)
        for (const DType c : kDTypes)
          for (const Layout layout : {Layout::kRows, Layout::kColumns, Layout::kStrided}) {
            const Layout other = layout == Layout::kRows ? Layout::kColumns : Layout::kRows;
            compute({.m = 35,
                     .n = 51,
                     .k = 71,
                     .precision = precision,
                     .a = a,
                     .b = b,
                     .c = c,
                     .bias = a,
                     .a_layout = layout,
                     .b_layout = layout,
                     .has_bias = true});
            compute({.m = 18,
                     .n = 20,
                     .k = 39,
                     .segment = 13,
                     .precision = precision,
                     .a = a,
                     .b = b,
                     .c = c,
                     .a_layout = layout,
                     .b_layout = other,
                     .accumulate = c == DType::kF32});
          }
}

TEST_P(GemmPrecision, EveryEdge) {
  for (const Precision precision : {Precision::kTf32, Precision::kBf16})
    for (const int64_t m : {1, 8, 15, 17, 47})
      for (const int64_t n : {1, 16, 31, 33, 50})
        for (const int64_t k : {1, 2, 32, 65})
          compute({.m = m,
                   .n = n,
                   .k = k,
                   .precision = precision,
                   .a = DType::kF32,
                   .c = k % 2 == 1 ? DType::kBf16 : DType::kF32,
                   .b_layout = Layout::kColumns,
                   .has_bias = m == 15});
}

TEST_P(GemmPrecision, WithoutProducts) {
  for (const DType c : kDTypes)
    for (const bool accumulate : {false, true}) {
      if (accumulate && c != DType::kF32) continue;
      Call call{
          .m = 3, .n = 70, .k = 1, .c = c, .bias = DType::kBf16, .has_bias = true, .accumulate = accumulate};
      Problem p(call);
      const Operand before = p.c;
      GemmArgs g = p.args();
      g.k = 0;
      ThreadPool pool(1);
      gemm(g, pool, {});
      p.call.k = 0;
      expect_close(p, before);
    }
}

// Several runs of k, blocks of the shared operand, strips and groups, either operand shared.
const Call kLarge[] = {
    {.m = 1408, .n = 256, .k = 4200, .c = DType::kBf16},
    {.m = 300, .n = 150, .k = 300, .c = DType::kBf16, .b_layout = Layout::kColumns, .has_bias = true},
    {.m = 130, .n = 330, .k = 400, .segment = 200, .a = DType::kF32, .a_layout = Layout::kColumns},
    {.m = 40, .n = 70, .k = 4500, .c = DType::kF16, .b_layout = Layout::kColumns},
    {.m = 50,
     .n = 37,
     .k = 400,
     .segment = 3,
     .b = DType::kF16,
     .c = DType::kBf16,
     .bias = DType::kBf16,
     .has_bias = true},
    {.m = 1000, .n = 200, .k = 40, .c = DType::kF16, .has_bias = true},
    {.m = 140, .n = 100, .k = 2500, .a_layout = Layout::kColumns, .accumulate = true},
};

TEST_P(GemmPrecision, SameBitsForAnyNumberOfThreads) {
  for (Call call : kLarge) {
    if (GetParam() < Isa::kAvx512) call.m = std::min<int64_t>(call.m, 60);  // else slow to no avail
    const auto one = compute(call, 1);
    for (const int threads : {2, 3, 8})
      EXPECT_EQ(one, Problem(call).run(threads)) << describe(call) << threads;
  }
}

TEST_P(GemmPrecision, SameBitsHoweverMAndNAreSplit) {
  for (const DType c : {DType::kF32, DType::kBf16})
    for (const Layout layout : {Layout::kRows, Layout::kColumns}) {
      Problem whole({.m = 171,
                     .n = 150,
                     .k = 530,
                     .segment = 265,
                     .c = c,
                     .a_layout = layout,
                     .b_layout = layout,
                     .has_bias = true}),
          parts(whole.call);
      whole.run(2);
      ThreadPool pool(2);
      for (const auto& [i0, i1] : {std::pair{0, 1}, {1, 30}, {30, 171}})
        for (const auto& [j0, j1] : {std::pair{0, 33}, {33, 34}, {34, 150}}) {
          GemmArgs g = parts.args();
          g.m = i1 - i0, g.n = j1 - j0;
          g.a = parts.a.from(i0, 0);
          g.b = parts.b.from(0, j0);
          g.c = parts.c.at(i0, j0);
          g.bias = parts.bias.at(0, j0);
          run_guarded(g, pool);
        }
      EXPECT_EQ(whole.c.bytes, parts.c.bytes);
    }
}

// Micro-batches and chunks of tokens: sums cut at segments, or at multiples of 256 of the only one.
TEST_P(GemmPrecision, SameBitsWhenKIsContinued) {
  const struct {
    int64_t k, segment, cut;
  } cases[] = {{51, 17, 17}, {900, 300, 600}, {600, 0, 256}, {1300, 0, 512}, {2200, 0, 2048}};
  for (const Precision precision : kPrecisions)
    for (const auto& [k, segment, cut] : cases) {
      const Call call{.m = 20,
                      .n = 40,
                      .k = k,
                      .segment = segment,
                      .precision = precision,
                      .a = DType::kF32,
                      .a_layout = Layout::kColumns};
      const auto whole = compute(call, 2);
      Problem parts(call);
      ThreadPool pool(2);
      for (const auto& [from, to] : {std::pair{int64_t{0}, cut}, {cut, k}}) {
        GemmArgs g = parts.args();
        g.k = to - from;
        g.a = parts.a.from(0, from);
        g.b = parts.b.from(from, 0);
        g.accumulate = from > 0;
        run_guarded(g, pool);
      }
      EXPECT_EQ(whole, parts.c.bytes) << describe(call);
    }
}

// However sums come about, a low C is the f32 C rounded once; operands cast before are operands cast here.
TEST_P(GemmPrecision, LowCIsTheF32COfOneRounding) {
  for (const Precision precision : kPrecisions)
    for (const DType low : {DType::kBf16, DType::kF16})
      for (const int64_t k : {70, 4500}) {
        Problem f32({.m = 40, .n = 70, .k = k, .precision = precision, .bias = low, .has_bias = true});
        Problem rounded_once = f32;
        rounded_once.call.c = low;
        rounded_once.c = Operand(40, 70, low, Layout::kRows, 9);
        f32.run(2);
        rounded_once.run(2);
        for (int64_t i = 0; i < 40; ++i)
          for (int64_t j = 0; j < 70; ++j)
            ASSERT_EQ(rounded_once.c(i, j), rounded_operand(f32.c(i, j), low))
                << describe(rounded_once.call) << i << j;
      }
}

TEST_P(GemmPrecision, CastsWhilePackingAreCastsBefore) {
  for (const Layout layout : {Layout::kRows, Layout::kColumns, Layout::kStrided}) {
    Problem here({.m = 40,
                  .n = 70,
                  .k = 333,
                  .a = DType::kF32,
                  .b = DType::kF32,
                  .a_layout = layout,
                  .b_layout = layout});
    Problem before = here;
    for (Operand* x : {&before.a, &before.b}) {
      const Operand f32 = *x;
      const bool a = x == &before.a;
      *x = Operand(a ? 40 : 333, a ? 333 : 70, DType::kBf16, layout, 9);
      for (int64_t i = 0; i < (a ? 40 : 333); ++i)
        for (int64_t j = 0; j < (a ? 333 : 70); ++j)
          write(rounded_operand(f32(i, j), DType::kBf16), DType::kBf16, x->at(i, j));
    }
    EXPECT_EQ(here.run(2), before.run(2));
  }
}

TEST_P(GemmPrecision, NanAndInfinityPassThrough) {
  for (const Precision precision : kPrecisions)
    for (const DType c : kDTypes) {
      Problem p({.m = 3, .n = 40, .k = 20, .precision = precision, .c = c});
      write(INFINITY, DType::kBf16, p.a.at(0, 4));
      write(std::nan(""), DType::kBf16, p.b.at(0, 39));
      p.run(1);
      EXPECT_TRUE(std::isinf(p.c(0, 0)));
      EXPECT_TRUE(std::isnan(p.c(0, 39)));
      EXPECT_TRUE(std::isfinite(p.c(1, 0)));
    }
}

// A C whose rows are cache lines is written past the caches, all but what does not fill a line.
TEST_P(GemmPrecision, PastTheCachesChangesNoBit) {
  for (const DType c : kDTypes)
    for (const bool a_is_wide : {false, true}) {
      Problem p({.m = a_is_wide ? 410 : 270, .n = a_is_wide ? 270 : 410, .k = 70, .c = c, .has_bias = true});
      const int64_t stride = a_is_wide ? 288 : 416;
      const size_t row = static_cast<size_t>(stride) * size_of(c),
                   width = static_cast<size_t>(p.call.n) * size_of(c);
      std::vector<std::byte> memory(static_cast<size_t>(p.call.m) * row + 64, kGuard);
      std::byte* aligned = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
      GemmArgs g = p.args();
      g.c = aligned, g.c_row_stride = stride, g.past_caches = true;
      ThreadPool pool(2);
      run_guarded(g, pool);
      p.run(2);
      for (int64_t i = 0; i < p.call.m; ++i) {
        const std::byte* here = aligned + static_cast<size_t>(i) * row;
        ASSERT_EQ(std::memcmp(here, p.c.at(i, 0), width), 0) << i << " " << describe(p.call);
        ASSERT_TRUE(std::all_of(here + width, here + row, [](std::byte b) { return b == kGuard; })) << i;
      }
    }
}

// Zeros behind a segment change nothing: what is padded inside is what is padded outside.
TEST_P(GemmPrecision, ZerosBehindKChangeNoBit) {
  for (const int64_t k : {1, 2, 3, 17, 31, 45}) {
    const Call call{.m = 20, .n = 40, .k = k};
    Problem padded({.m = 20, .n = 40, .k = bf16::round_up(k, 32)}), plain(call);
    for (int64_t q = 0; q < padded.call.k; ++q) {
      for (int64_t i = 0; i < 20; ++i) write(q < k ? plain.a(i, q) : 0, DType::kBf16, padded.a.at(i, q));
      for (int64_t j = 0; j < 40; ++j) write(q < k ? plain.b(q, j) : 0, DType::kBf16, padded.b.at(q, j));
    }
    EXPECT_EQ(plain.run(1), padded.run(1)) << k;
  }
}

// A thread that keeps its tiles costs 8 KiB at every switch, and deeper sleep states.
TEST(GemmTiles, AreReleased) {
  if (best_isa() < Isa::kAmx) GTEST_SKIP() << "this CPU has no AMX";
  ASSERT_TRUE(select_isa(nullptr).ok());
  const auto in_use = [] {
    uint32_t low = 0, high = 0;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
    return (low >> 18 & 1u) != 0;
  };
  bf16::kAmxKernels.begin();
  alignas(64) static std::byte panels[2][bf16::kPanelStepBytes] = {};
  alignas(64) static float sums[bf16::kBlockFloats];
  bf16::kAmxKernels.multiply({.a = panels[0], .b = panels[1], .sums = sums, .steps = 1});
  const bool seen = in_use();
  bf16::kAmxKernels.end();
  if (!seen) GTEST_SKIP() << "the system does not tell";
  EXPECT_FALSE(in_use());
  compute({.m = 64, .n = 64, .k = 64});
  EXPECT_FALSE(in_use());
}

TEST(GemmWorkspaceOfPrecision, IsBoundedAndOneForAllInstructionSets) {
  const GemmTypes low{.precision = Precision::kBf16, .c_dtype = DType::kBf16};
  const int64_t best = gemm_workspace_bytes(2048, 3072, 576, 2, low);
  ASSERT_TRUE(select_isa("portable").ok());
  EXPECT_EQ(gemm_workspace_bytes(2048, 3072, 576, 2, low), best);
  ASSERT_TRUE(select_isa(nullptr).ok());
  EXPECT_LE(gemm_workspace_bytes(49152, 49152, 49152, 8, low), 13 << 20);
  EXPECT_LE(gemm_workspace_bytes(1, 1, 1, 1, low), 24 << 10);
  // Who plans for the largest of several products may run any of them.
  for (int64_t m = 8; m <= 1024; m += 8)
    for (const int64_t n : {32, 256, 576, 900})
      for (const int threads : {1, 4, 8}) {
        const auto bytes = [&](int64_t x, int64_t y, int64_t z) {
          return gemm_workspace_bytes(x, y, z, threads, low);
        };
        ASSERT_LE(bytes(m, n, 8192), bytes(m + 8, n, 8192)) << m << " " << n << " " << threads;
        ASSERT_LE(bytes(n, m, 8192), bytes(n, m + 8, 8192)) << m << " " << n << " " << threads;
        ASSERT_LE(bytes(n, 49152, m), bytes(n, 49152, m + 8)) << m << " " << n << " " << threads;
      }
}

}  // namespace
}  // namespace plimsoll::cpu::bf16
