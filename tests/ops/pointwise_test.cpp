// The op that holds an expression: derivatives through broadcasting, result types, operands that do not fit.
#include "ops/pointwise.h"

#include <gtest/gtest.h>

#include "ops/op_testing.h"
#include "ops/pointwise_torch.h"

namespace plimsoll::ops_testing {
namespace {

Attrs expr(const std::string& text) { return {{"expr", text}}; }

TEST(Pointwise, DerivativesMatchFiniteDifferences) {
  const std::vector<DerivativeCase> rows = {
      {"one shape", "pointwise", {normal({2, 3}), normal({2, 3}, 1)}, expr("sub(mul(x0,x1),tanh(x0))")},
      {"a row", "pointwise", {normal({2, 3, 4}), normal({4}, 1)}, expr("mul(x0,exp(x1))")},
      {"a scalar", "pointwise", {normal({2, 3}), normal({1}, 1)}, expr("mul(x0,x1)")},
      {"a column", "pointwise", {normal({2, 3}), positive({2, 1}, 0.5, 1)}, expr("div(x0,x1)")},
      {"leading axes", "pointwise", {normal({2, 3, 4}), normal({3, 4}, 1)}, expr("mul(x0,sigmoid(x1))")},
      {"both stretched",
       "pointwise",
       {normal({3, 1}), normal({1, 4}, 1)},
       expr("sub(mul(x0,x0),mul(x0,x1))")},
      {"a larger result",
       "pointwise",
       {normal({3})},
       {{"expr", "exp(x0)"}, {"shape", std::vector<int64_t>{2, 3}}}},
      {"an operand passed on", "pointwise", {normal({3}), normal({3}, 1)}, expr("add(x0,x1)")},
      {"one that is not read",
       "pointwise",
       {normal({3}), normal({3}, 1), normal({3}, 2)},
       expr("mul(x0,x2)"),
       {0},
       -1,
       {1}},
  };
  for (const auto& row : rows) EXPECT_LT(derivative_error(row), kDerivativeTolerance) << row.name;
}

TEST(Pointwise, GivesKnownValues) {
  const auto y =
      evaluate("pointwise", {values({2, 1}, {1, 2}), values({3}, {10, 20, 30})}, expr("add(x0,x1)"))[0];
  EXPECT_EQ(y.type.shape, (Shape{2, 3}));
  EXPECT_EQ(y.data, (std::vector<double>{11, 21, 31, 12, 22, 32}));
  const auto is = evaluate("pointwise", {ints({3}, {1, -100, 2})}, expr("ne(x0,-100)"))[0];
  EXPECT_EQ(is.data, (std::vector<double>{1, 0, 1}));
}

std::string type_of(const std::vector<TensorType>& inputs, const Attrs& attrs) {
  ir::Graph graph;
  Builder b(graph, ops::find_op);
  std::vector<ValueId> operands;
  for (size_t i = 0; i < inputs.size(); ++i)
    operands.push_back(b.state({fmt::format("in{}", i), inputs[i], {}}));
  const ValueId y = b.op("pointwise", operands, attrs);
  return b.status() ? to_string(graph.type(y)) : b.status().error().what;
}

TEST(Pointwise, ResultTypes) {
  const TensorType low{DType::kBf16, {2, 3}};
  EXPECT_EQ(type_of({low, low}, expr("sub(x0,x1)")), "bf16[2,3]");
  EXPECT_EQ(type_of({low, f32({3})}, expr("sub(x0,x1)")), "f32[2,3]");
  EXPECT_EQ(type_of({low}, expr("exp(x0)")), "f32[2,3]") << "as PyTorch's autocast";
  EXPECT_EQ(type_of({low}, expr("pow(x0,2)")), "f32[2,3]") << "also where it is a product";
  EXPECT_EQ(type_of({low, i32({3})}, expr("where(x1,x0,0)")), "bf16[2,3]");
  EXPECT_EQ(type_of({i32({3})}, expr("eq(x0,1)")), "f32[3]");
  EXPECT_EQ(type_of({low}, {{"expr", "exp(x0)"}, {"out", "bf16"}}), "bf16[2,3]");
}

TEST(Pointwise, SaysWhatDoesNotFit) {
  const std::vector<ErrorCase> rows = {
      {"pointwise",
       {f32({2}), f32({3})},
       expr("add(x0,x1)"),
       "pointwise: shapes do not stretch to one: x0 [2], x1 [3]"},
      {"pointwise", {f32({2})}, expr("add(x0,x1)"), "pointwise: expr reads x1, given 1 operands"},
      {"pointwise",
       {f32({2})},
       expr("plus(x0,1)"),
       "pointwise: expr \"plus(x0,1)\" has a function plus that is none (at character 6)"},
      {"pointwise", {{DType::kI8, {2}}}, expr("x0"), "pointwise: x0 must be f32, bf16, f16 or i32, is i8[2]"},
      {"pointwise",
       {f32({2})},
       {{"expr", "x0"}, {"shape", std::vector<int64_t>{3}}},
       "pointwise: the operands do not stretch to {shape}: x0 [2]"},
  };
  for (const auto& row : rows) EXPECT_EQ(operand_error(row), row.what);
}

TEST(Pointwise, ADerivativeThatIsTooLargeIsNamed) {
  std::string text = "t0=pow(x0,x1);";
  for (int i = 1; i < 120; ++i) text += fmt::format("t{}=pow(x1,t{});", i, i - 1);
  const DerivativeCase row{"", "pointwise", {normal({3}), normal({3}, 1)}, expr(text + "t119")};
  std::string what;
  try {
    gradients(row, {normal({3}, 2)}, {true, false});
  } catch (const std::runtime_error& error) {
    what = error.what();
  }
  EXPECT_NE(what.find("derivative_too_large"), std::string::npos) << what;
}

RefTensor torch_operand(const TorchCase& c, std::vector<double> data) {
  if (c.is_positive)
    for (double& v : data) v = std::abs(v) + 0.25;
  return values({8}, std::move(data));
}

TEST(Pointwise, ValuesAndGradientsArePyTorchs) {
  const RefTensor weights = values({8}, {1, 2, 3, 4, 5, 6, 7, 8});
  for (const TorchCase& c : kTorchCases) {
    Tensors inputs = {torch_operand(c, kTorchX), torch_operand(c, kTorchY), torch_operand(c, kTorchZ)};
    inputs.resize(c.gradients.size());
    const RefTensor y = evaluate("pointwise", inputs, expr(c.text))[0];
    EXPECT_LT(distance(y, values({8}, c.result)), 1e-12) << c.name;
    const DerivativeCase row{c.name, "pointwise", inputs, expr(c.text)};
    const Tensors found = gradients(row, {weights}, std::vector<bool>(inputs.size(), true));
    for (size_t i = 0; i < inputs.size(); ++i) {
      const RefTensor none = values({8}, std::vector<double>(8, 0));
      EXPECT_LT(distance(found[i].data.empty() ? none : found[i], values({8}, c.gradients[i])), 1e-12)
          << c.name << " by x" << i;
    }
  }
}

}  // namespace
}  // namespace plimsoll::ops_testing
