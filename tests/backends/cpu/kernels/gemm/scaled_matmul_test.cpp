// Products of quantised operands against their reference: what quantize_operand makes of normals goes in.
#include <dlfcn.h>

#include <cstdlib>

#include "backends/cpu/kernel_harness.h"
#include "backends/cuda/kernels/gemm/coded_product.h"
#include "ops/scaled_operand.h"

namespace plimsoll::cpu::fixtures {
namespace {

constexpr double kScaledSum = 2e-5;

std::vector<Tensor> quantised_codes(const Tensor& x, const char* scheme, bool transposed) {
  return run_cpu({"quantize_operand", {x}, {{"scheme", std::string(scheme)}, {"transposed", transposed}}});
}

struct ScaledCase {
  const char *a, *b;
  bool a_across, b_across;
};

/// C [m, n] over k; operands as they lie.
OpRun scaled_product(const ScaledCase& c, int64_t m, int64_t n, int64_t k, Attrs more = {}) {
  const auto operand = [&](const char* scheme, int64_t lines, bool across, unsigned seed) {
    return quantised_codes(normal(across ? Shape{k, lines} : Shape{lines, k}, seed), scheme, false);
  };
  const auto a = operand(c.a, m, c.a_across, 1), b = operand(c.b, n, c.b_across, 2);
  more.set("a_scheme", std::string(c.a));
  more.set("b_scheme", std::string(c.b));
  more.set("a_across", c.a_across);
  more.set("b_across", c.b_across);
  more.set("inner", k);
  more.set("columns", n);
  OpRun run{"scaled_matmul", {a[0], a[1], b[0], b[1], absent(), absent()}, more};
  if (std::string(c.a).starts_with("nvfp4")) run.inputs.insert(run.inputs.end(), {a[2], b[2]});
  return run;
}

constexpr ScaledCase kScaledCases[] = {{"e4m3", "e4m3", false, false},
                                       {"e5m2", "e4m3", false, true},
                                       {"e5m2", "e4m3", true, true},
                                       {"fp8-block-1x128", "fp8-block-128x128", false, false},
                                       {"fp8-block-1x128", "fp8-block-128x128", false, true},
                                       {"mxfp8", "mxfp8", false, false},
                                       {"nvfp4", "nvfp4-16x16", false, false},
                                       {"nvfp4", "nvfp4-16x16", false, true}};

TEST(ScaledMatmul, AgainstReference) {
  for (const ScaledCase& c : kScaledCases) {
    expect_op(scaled_product(c, 9, 37, 33), kScaledSum);
    expect_op(scaled_product(c, 40, 300, 270), kScaledSum);
  }
}

TEST(ScaledMatmul, BiasAndDtypeOfTheResult) {
  for (const ScaledCase& c : {kScaledCases[0], kScaledCases[3]}) {
    OpRun run = scaled_product(c, 20, 37, 150, {{"out", std::string("bf16")}});
    run.inputs[4] = normal({37}, 3);
    expect_op(run, kBf16Step + kScaledSum);
    run.inputs[4] = bf16(run.inputs[4]);
    expect_op(run, kBf16Step + kScaledSum);
  }
}

/// More lines than a band has, and several segments, the last one short.
TEST(ScaledMatmul, BandsAndSegments) {
  for (const ScaledCase& c : {kScaledCases[2], kScaledCases[5], kScaledCases[7]}) {
    OpRun run = scaled_product(c, 1100, 70, 80, {{"segment", int64_t{32}}});
    expect_op(run, kScaledSum);
    run.inputs[5] = normal({1100, 70}, 5);
    expect_op(run, kScaledSum);
  }
}

/// More terms than are packed together, with f32 results and with low ones.
TEST(ScaledMatmul, LongSums) {
  for (const ScaledCase& c : {kScaledCases[0], kScaledCases[5], kScaledCases[6]})
    for (const int64_t terms : {2112, 4160}) {
      expect_op(scaled_product(c, 34, 40, terms), kScaledSum);
      OpRun run = scaled_product(c, 40, 34, terms, {{"out", std::string("bf16")}});
      run.inputs[4] = normal({34}, 3);
      expect_op(run, kBf16Step + kScaledSum);
    }
}

/// Sums of segments are rounded once.
TEST(ScaledMatmul, SegmentsOfALowResult) {
  for (const ScaledCase& c : {kScaledCases[2], kScaledCases[5]}) {
    const Attrs segments{{"segment", int64_t{64}}},
        low{{"segment", int64_t{64}}, {"out", std::string("bf16")}};
    expect_op(scaled_product(c, 70, 40, 192, low), kBf16Step + kScaledSum);
    for_each_isa([&](const std::string& isa) {
      const Tensor sums = run_cpu(scaled_product(c, 70, 40, 192, segments))[0];
      expect_same_bits(run_cpu(scaled_product(c, 70, 40, 192, low)), {bf16(sums)}, isa);
    });
  }
}

/// A sum over all segments is the sum over the first ones that the next ones go on from: micro-batches.
TEST(ScaledMatmul, GoesOnFromAnAccumulator) {
  constexpr int64_t kTerms = 96, kHalf = 48, kRows = 24, kColumns = 40;
  const Tensor x = normal({kTerms, kColumns}, 1), dy = normal({kTerms, kRows}, 2),
               scales = floats({2}, {3, 5});
  const auto part = [&](const Tensor& of, int64_t first, int64_t count, int64_t slot) {
    const int64_t cols = of.type.shape.dim(1);
    const Tensor rows{{DType::kF32, {count, cols}},
                      {of.bits.begin() + first * cols, of.bits.begin() + (first + count) * cols}};
    return run_cpu({"quantize_operand", {rows, scales}, {{"scheme", std::string("e4m3")}, {"slot", slot}}});
  };
  const auto gradient = [&](int64_t first, int64_t count, const Tensor& acc) {
    const auto a = part(dy, first, count, 0), b = part(x, first, count, 1);
    return run_cpu({"scaled_matmul",
                    {a[0], a[1], b[0], b[1], absent(), acc},
                    {{"a_scheme", std::string("e4m3")},
                     {"b_scheme", std::string("e4m3")},
                     {"a_across", true},
                     {"b_across", true},
                     {"inner", count},
                     {"columns", kColumns},
                     {"segment", int64_t{16}}}})[0];
  };
  for_each_isa([&](const std::string& isa) {
    const Tensor first = gradient(0, kHalf, absent());
    expect_same_bits(gradient(0, kTerms, absent()), gradient(kHalf, kHalf, first), isa);
  });
}

/// The gradient of a weight whose operands have blocks that end with sequences, from a first micro-batch on.
Tensor by_sequence(const char* scheme, const Tensor& x, const Tensor& dy, int64_t segment,
                   const Tensor& acc) {
  const Attrs turned{{"scheme", std::string(scheme)}, {"transposed", true}, {"by_sequence", true}};
  const auto a = run_cpu({"quantize_operand", {dy}, turned}), b = run_cpu({"quantize_operand", {x}, turned});
  const Shape& shape = x.type.shape;
  const OpRun run{"scaled_matmul",
                  {a[0], a[1], b[0], b[1], absent(), acc},
                  {{"a_scheme", std::string(scheme)},
                   {"b_scheme", std::string(scheme)},
                   {"inner", shape.dim(0) * segment},
                   {"columns", shape.dim(2)},
                   {"segment", segment},
                   {"terms", shape.dim(1)}}};
  expect_op(run, kScaledSum);
  return run_cpu(run)[0];
}

TEST(ScaledMatmul, BlocksThatEndWithSequencesKnowNoMicroBatch) {
  constexpr int64_t kTokens = 70;
  const Tensor x = normal({3, kTokens, 24}, 1), dy = normal({3, kTokens, 40}, 2);
  const auto part = [](const Tensor& of, int64_t first, int64_t count) {
    const int64_t each = kTokens * of.type.shape.dim(2);
    return Tensor{{DType::kF32, {count, kTokens, of.type.shape.dim(2)}},
                  {of.bits.begin() + first * each, of.bits.begin() + (first + count) * each}};
  };
  for (const auto& [scheme, segment] :
       {std::pair<const char*, int64_t>{"fp8-block-1x128", 128}, {"mxfp8", 96}}) {
    const Tensor whole = by_sequence(scheme, x, dy, segment, absent());
    const Tensor first = by_sequence(scheme, part(x, 0, 2), part(dy, 0, 2), segment, absent());
    const Tensor both = by_sequence(scheme, part(x, 2, 1), part(dy, 2, 1), segment, first);
    expect_same_bits({both}, {whole}, scheme);
  }
}

/// Extents that units of a card take.
TEST(ScaledMatmul, InWholeSixteens) {
  for (const ScaledCase& c : kScaledCases) {
    OpRun run = scaled_product(c, 48, 304, 288);
    expect_op(run, kScaledSum);
    run.inputs[5] = normal({48, 304}, 5);
    expect_op(run, kScaledSum);
    run = scaled_product(c, 144, 32, 160, {{"out", std::string("bf16")}});
    run.inputs[4] = bf16(normal({32}, 3));
    expect_op(run, kBf16Step + kScaledSum);
  }
}

/// Of a product: compute capabilities of the cards that have units for it, from the first to the last.
struct UnitsCase {
  ScaledCase product;
  int first, last;
};
constexpr UnitsCase kUnits[] = {
    {kScaledCases[0], 89, 999},           {kScaledCases[1], 89, 999},  {kScaledCases[2], 89, 999},
    {{"e5m2", "e5m2", true, true}, 1, 0}, {kScaledCases[3], 90, 90},   {kScaledCases[4], 90, 90},
    {kScaledCases[5], 100, 999},          {kScaledCases[6], 100, 999}, {kScaledCases[7], 100, 999}};

cuda::ScaledProduct product_of(const OpRun& run) { return cuda::ScaledProduct(types_of(run, make_op(run))); }

TEST(ScaledMatmul, UnitsOfCards) {
  for (const UnitsCase& c : kUnits)
    for (const int capability : {0, 75, 80, 86, 89, 90, 100, 120})
      EXPECT_EQ(cuda::has_coded_units(product_of(scaled_product(c.product, 48, 32, 64)), capability),
                capability >= c.first && capability <= c.last)
          << c.product.a << " " << capability;
  EXPECT_FALSE(cuda::has_coded_units(product_of(scaled_product(kScaledCases[0], 48, 32, 72)), 90));
  EXPECT_FALSE(cuda::has_coded_units(product_of(scaled_product(kScaledCases[6], 48, 32, 48)), 100));
}

/// What the fake library counts; -1 where the library is another.
int64_t narrow_products() {
  void* library = dlopen("libcublasLt.so.13", RTLD_NOLOAD | RTLD_LAZY);
  if (library == nullptr) return -1;
  const auto count = reinterpret_cast<int64_t (*)()>(dlsym(library, "plimsollFakeNarrowProducts"));
  return count == nullptr ? -1 : count();
}

TEST(ScaledMatmul, RunsOnTheUnitsThatTheCardHas) {
  cuda::CudaDevice* card = cuda::fixtures::card();
  if (card == nullptr || narrow_products() < 0) GTEST_SKIP() << "no fake card";
  const int capability = std::stoi(std::string(card->target().instruction_set()).substr(3));
  const bool library_refuses = std::getenv("PLIMSOLL_FAKE_NO_NARROW") != nullptr;
  for (const UnitsCase& c : kUnits) {
    const bool has_units = capability >= c.first && capability <= c.last && !library_refuses;
    const int64_t before = narrow_products();
    run_on_card(*card, scaled_product(c.product, 48, 32, 64));
    EXPECT_EQ(narrow_products() - before, has_units ? 1 : 0) << c.product.a;
  }
}

/// A number of its own for each place.
uint32_t mixed(int64_t a, int64_t b) {
  return static_cast<uint32_t>((a * 2654435761U ^ b * 40503) >> 3 & 0xFFFF);
}

/// Codes and scales of lines [first, first + lines) of an operand of `k` elements a line.
std::vector<Tensor> lines_of_codes(const char* name, bool across, int64_t first, int64_t lines, int64_t k) {
  const numerics::Scheme scheme = *numerics::find_scheme(name);
  const numerics::SchemeInfo& info = numerics::info(scheme);
  const Shape matrix = across ? Shape{k, lines} : Shape{lines, k};
  Tensor codes{ops::codes_type(scheme, matrix), {}}, scales{ops::scales_type(scheme, matrix), {}};
  const auto at = [&](int64_t row, int64_t col) {
    return across ? mixed(first + col, row) : mixed(first + row, col);
  };
  const bool halves = numerics::info(info.codes).stored_bits == 4;
  const int64_t cols = codes.type.shape.dim(1), rows = codes.type.shape.dim(0);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c)
      codes.bits.push_back(halves ? at(r, 2 * c) % 16 | at(r, 2 * c + 1) % 16 << 4 : at(r, c) % 0x70);
  if (info.block_rows == 0) {
    scales.bits = {std::bit_cast<uint32_t>(0.5F)};
    return {codes, scales, scalar(3)};
  }
  const int64_t first_row = across ? 0 : first / info.block_rows,
                first_col = across ? first / info.block_cols : 0;
  for (int64_t r = 0; r < scales.type.shape.dim(0); ++r)
    for (int64_t c = 0; c < scales.type.shape.dim(1); ++c) {
      const uint32_t some = mixed(first_row + r, first_col + c) % 8;
      scales.bits.push_back(scales.type.dtype == DType::kF32     ? (124 + some) << 23
                            : scheme == numerics::Scheme::kMxfp8 ? 122 + some
                                                                 : 0x30 + some);
    }
  return {codes, scales, scalar(3)};
}

/// Rows have the bits that they have by themselves, whatever the bands and calls of a product.
TEST(ScaledMatmul, RowsKnowNoOthers) {
  constexpr int64_t kRows = 1100, kFew = 40, kColumns = 50, kTerms = 128;
  for (const ScaledCase& c : kScaledCases) {
    const auto product = [&](int64_t rows, int64_t segment) {
      const auto a = lines_of_codes(c.a, c.a_across, 0, rows, kTerms),
                 b = lines_of_codes(c.b, c.b_across, 0, kColumns, kTerms);
      OpRun run{"scaled_matmul",
                {a[0], a[1], b[0], b[1], absent(), absent()},
                {{"a_scheme", std::string(c.a)},
                 {"b_scheme", std::string(c.b)},
                 {"a_across", c.a_across},
                 {"b_across", c.b_across},
                 {"inner", kTerms},
                 {"columns", kColumns},
                 {"segment", segment}}};
      if (std::string(c.a) == "nvfp4") run.inputs.insert(run.inputs.end(), {a[2], b[2]});
      return run_cpu(run)[0];
    };
    for_each_isa([&](const std::string& isa) {
      for (const int64_t segment : {kTerms, kTerms / 2}) {
        const Tensor all = product(kRows, segment), few = product(kFew, segment);
        EXPECT_TRUE(std::equal(few.bits.begin(), few.bits.end(), all.bits.begin())) << c.a << ", " << isa;
      }
    });
  }
}

/// Of 64 rows over 160 terms: every code, zeros and subnormals among them; with `odd` also NaN, and scales
/// under which numbers leave bf16's normal ones.
std::vector<Tensor> codes_of_blocks(const char* name, int64_t salt, bool odd) {
  constexpr int64_t kLines = 64, kTerms = 160;
  auto codes = lines_of_codes(name, false, salt, kLines, kTerms);
  for (size_t i = 0; i < codes[0].bits.size(); ++i) {
    const uint32_t code = mixed(static_cast<int64_t>(i), salt) % 256;
    codes[0].bits[i] = code % 128 == 127 && !odd ? 0 : code;
  }
  if (!odd) return codes;
  const bool wide = codes[1].type.dtype == DType::kF32;
  const auto blocks = static_cast<size_t>(codes[1].type.shape.dim(1));
  for (const auto& [row, field] : {std::pair<size_t, uint32_t>{5, 2}, {20, 250}, {40, 9}})
    codes[1].bits[row * blocks + 1] = wide ? field << 23 : field;
  if (wide) codes[1].bits[50 * blocks] = std::bit_cast<uint32_t>(0.375F);
  return codes;
}

/// Codes that are multiplied as they lie give what a product of their numbers gives.
TEST(ScaledMatmul, CodesHaveTheBitsOfTheirNumbers) {
  for (const char* name : {"mxfp8", "fp8-block-1x128"})
    for (const bool odd : {false, true}) {
      const auto a = codes_of_blocks(name, 1, odd), b = codes_of_blocks(name, 77, odd);
      const Attrs coded{{"a_scheme", std::string(name)},
                        {"b_scheme", std::string(name)},
                        {"a_across", false},
                        {"b_across", false},
                        {"inner", int64_t{160}},
                        {"columns", int64_t{64}}};
      const Attrs numbers{{"scheme", std::string(name)}, {"out", std::string("bf16")}};
      const Attrs low{{"precision", std::string("bf16")}, {"out", std::string("f32")}};
      for_each_isa([&](const std::string& isa) {
        const auto got = run_cpu({"scaled_matmul", {a[0], a[1], b[0], b[1], absent(), absent()}, coded});
        const auto x = run_cpu({"dequantize_operand", {a[0], a[1]}, numbers}),
                   w = run_cpu({"dequantize_operand", {b[0], b[1]}, numbers});
        expect_same_bits(got, run_cpu({"linear", {x[0], w[0]}, low}), std::string(name) + ", " + isa);
      });
    }
}

/// A product whose columns go by bands has in the second one what the product with that band alone has.
TEST(ScaledMatmul, ABandOfACardIsItsColumns) {
  cuda::CudaDevice* card = cuda::fixtures::card();
  if (card == nullptr) GTEST_SKIP() << "no card";
  constexpr int64_t kRows = 16, kColumns = 272, kTerms = 65536, kBand = 256;
  const auto product = [&](const ScaledCase& c, int64_t first, int64_t columns) {
    const auto a = lines_of_codes(c.a, c.a_across, 0, kRows, kTerms),
               b = lines_of_codes(c.b, c.b_across, first, columns, kTerms);
    OpRun run{"scaled_matmul",
              {a[0], a[1], b[0], b[1], absent(), absent()},
              {{"a_scheme", std::string(c.a)},
               {"b_scheme", std::string(c.b)},
               {"a_across", c.a_across},
               {"b_across", c.b_across},
               {"inner", kTerms},
               {"columns", columns}}};
    if (std::string(c.a) == "nvfp4") run.inputs.insert(run.inputs.end(), {a[2], b[2]});
    return run;
  };
  const int capability = std::stoi(std::string(card->target().instruction_set()).substr(3));
  bool is_first = true;
  for (const size_t i : {1U, 3U, 4U, 5U, 7U}) {
    const OpRun whole = product(kScaledCases[i], 0, kColumns);
    ASSERT_EQ(product_of(whole).band(), kBand);
    if (!cuda::has_coded_units(product_of(whole), capability) && !is_first) continue;
    is_first = false;
    const Tensor all = run_on_card(*card, whole)[0];
    const Tensor last = run_on_card(*card, product(kScaledCases[i], kBand, kColumns - kBand))[0];
    for (int64_t row = 0; row < kRows; ++row)
      for (int64_t column = kBand; column < kColumns; ++column) {
        const auto wanted = last.value(static_cast<size_t>(row * (kColumns - kBand) + column - kBand));
        const auto got = all.value(static_cast<size_t>(row * kColumns + column));
        ASSERT_NEAR(got, wanted, 1e-5 * std::abs(wanted)) << kScaledCases[i].a << " " << row << " " << column;
      }
  }
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
