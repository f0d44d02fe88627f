// Products of quantised operands against their reference: what quantize_operand makes of normals goes in.
#include "backends/cpu/kernel_harness.h"

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

}  // namespace
}  // namespace plimsoll::cpu::fixtures
