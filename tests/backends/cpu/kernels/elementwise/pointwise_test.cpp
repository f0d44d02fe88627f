// Expressions against the reference: every function, operands stretched and of every dtype.
#include "backends/cpu/kernel_harness.h"
#include "ops/expression.h"

namespace plimsoll::cpu::fixtures {
namespace {

Attrs expr(const std::string& text) { return {{"expr", text}}; }

Tensor positive_values(const Shape& shape, unsigned seed) {
  Tensor t = normal(shape, seed);
  for (uint32_t& bits : t.bits) bits &= 0x7FFFFFFFU;
  return t;
}

TEST(Pointwise, EveryFunction) {
  const Shape s{3, 700};
  for (const char* f : {"neg", "abs", "sign", "exp", "tanh", "sigmoid", "softplus", "erf", "relu"})
    expect_op({"pointwise", {normal(s, 1)}, expr(std::string(f) + "(x0)")}, 1e-6);
  for (const char* f : {"sqrt", "rsqrt", "log"})
    expect_op({"pointwise", {positive_values(s, 1)}, expr(std::string(f) + "(x0)")}, 1e-6);
  for (const char* f : {"add", "sub", "mul", "div", "max", "min", "lt", "le", "gt", "ge", "eq", "ne"})
    expect_op({"pointwise", {normal(s, 1), normal(s, 2)}, expr(std::string(f) + "(x0,x1)")}, 1e-6);
  expect_op({"pointwise", {positive_values(s, 1), normal(s, 2)}, expr("pow(x0,x1)")}, 4e-6);
  expect_op({"pointwise", {normal(s, 1), normal(s, 2), normal(s, 3)}, expr("where(gt(x0,0),x1,x2)")}, 0);
  expect_op({"pointwise", {normal(s, 1)}, expr("clamp(x0,-0.5,inf)")}, 0);
}

TEST(Pointwise, PowersOfNegativesAndZero) {
  const Tensor a = floats({8}, {-2, -2, -2, 0, 0, 1, 3, -1}), b = floats({8}, {3, 2, -1, 2, 0, 9, 0, 5});
  for_each_isa([&](const std::string& isa) {
    const Tensor y = run_cpu({"pointwise", {a, b}, expr("pow(x0,x1)")})[0];
    const std::vector<double> expected = {-8, 4, -0.5, 0, 1, 1, 1, -1};
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(y.value(i), expected[i], 3e-6) << isa << " " << i;
    EXPECT_TRUE(std::isnan(run_cpu({"pointwise", {a, floats({1}, {0.3F})}, expr("pow(x0,x1)")})[0].value(0)));
  });
}

/// What is not a number stays so.
TEST(Pointwise, NotANumberPasses) {
  const Tensor x = floats({3}, {NAN, 1, NAN});
  for_each_isa([&](const std::string& isa) {
    for (const char* f :
         {"relu(x0)", "max(x0,2)", "min(2,x0)", "clamp(x0,0,1)", "sigmoid(x0)", "softplus(x0)"})
      EXPECT_TRUE(std::isnan(run_cpu({"pointwise", {x}, expr(f)})[0].value(2))) << f << " " << isa;
  });
}

TEST(Pointwise, StretchedOperands) {
  const std::string f = "add(mul(x0,x1),x2)";
  expect_op({"pointwise", {normal({2, 40, 130}, 1), normal({130}, 2), normal({1}, 3)}, expr(f)}, 1e-6);
  expect_op({"pointwise", {normal({2, 40, 130}, 1), normal({40, 1}, 2), normal({2, 1, 130}, 3)}, expr(f)},
            1e-6);
  expect_op({"pointwise", {normal({5, 1}, 1), normal({1, 7}, 2), normal({1, 1}, 3)}, expr(f)}, 1e-6);
  expect_op({"pointwise", {normal({3, 1, 5, 1, 3}, 1), normal({2, 1, 4, 1}, 2), normal({3}, 3)}, expr(f)},
            1e-6);
  expect_op({"pointwise", {normal({7}, 1)}, {{"expr", "neg(x0)"}, {"shape", std::vector<int64_t>{9, 7}}}}, 0);
}

TEST(Pointwise, EveryStoredDtype) {
  const Shape s{5, 333};
  const Tensor x = normal(s, 1), row = normal({333}, 2);
  for (const DType dtype : {DType::kBf16, DType::kF16}) {
    const double step = dtype == DType::kBf16 ? kBf16Step : kF16Step;
    expect_op({"pointwise", {as(dtype, x), as(dtype, row)}, expr("sub(x0,mul(x0,x1))")}, step);
    expect_op({"pointwise", {as(dtype, x), row}, expr("sub(x0,mul(x0,x1))")}, 1e-6);
    expect_op({"pointwise", {as(dtype, x)}, expr("exp(x0)")}, 1e-6);
  }
  expect_op({"pointwise", {ints({4}, {1, -100, 3, 0}), normal({2, 4}, 3)}, expr("where(ne(x0,-100),x1,0)")},
            0);
}

TEST(Pointwise, LongExpressions) {
  std::string f = "t0=mul(x0,x1);";
  for (int i = 1; i < 30; ++i)
    f += fmt::format("t{}={}(t{},{});", i, i % 2 == 0 ? "mul" : "sub", i - 1, i % 3 == 0 ? "x0" : "0.9");
  const OpRun run{"pointwise", {normal({4, 5000}, 1), normal({4, 5000}, 2)}, expr(f + "t29")};
  expect_op(run, 1e-5);
}

/// The same bits as the ops that it stands for.
TEST(Pointwise, KeepsTheBitsOfThePlainOps) {
  const Tensor x = normal({3, 900}, 1), y = normal({3, 900}, 2);
  for_each_isa([&](const std::string& isa) {
    expect_same_bits(run_cpu({"pointwise", {x, y}, expr("add(x0,x1)")}), run_cpu({"add", {x, y}}), isa);
    expect_same_bits(run_cpu({"pointwise", {x, y}, expr("mul(x0,x1)")}), run_cpu({"mul", {x, y}}), isa);
    expect_same_bits(run_cpu({"pointwise", {x}, expr("mul(x0,sigmoid(x0))")}), run_cpu({"silu", {x}}), isa);
    const Tensor product = run_cpu({"pointwise", {x, y}, expr("mul(x0,x1)")})[0];
    expect_same_bits(run_cpu({"pointwise", {x, y}, expr("add(mul(x0,x1),x0)")}),
                     run_cpu({"add", {product, x}}), isa + ": a product and a sum are rounded each");
  });
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
