// Linear maps and embeddings: derivatives, accumulation, both layouts of the weight.
#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace plimsoll::ops_testing {
namespace {

const Attrs kPlain{{"transposed", false}};
const Attrs kTransposed{{"transposed", true}};

TEST(Linear, DerivativesMatchFiniteDifferences) {
  const std::vector<DerivativeCase> rows = {
      {"linear", "linear", {normal({2, 3}), normal({4, 3}, 1)}, kPlain},
      {"linear with bias", "linear", {normal({2, 2, 3}), normal({4, 3}, 1), normal({4}, 2)}, kPlain},
      {"linear transposed", "linear", {normal({2, 3}), normal({3, 4}, 1), normal({4}, 2)}, kTransposed},
      {"linear of one row", "linear", {normal({3}), normal({1, 3}, 1)}, kPlain},
      {"linear_add",
       "linear_add",
       {normal({2, 2, 3}), normal({4, 3}, 1), normal({2, 2, 4}, 2)},
       {{"column", int64_t{0}}, {"transposed", false}}},
      {"linear_add to columns in the middle",
       "linear_add",
       {normal({2, 3}), normal({3, 2}, 1), normal({2, 6}, 2)},
       {{"column", int64_t{3}}, {"transposed", true}}},
      {"linear_add to the last columns",
       "linear_add",
       {normal({2, 3}), normal({2, 3}, 1), normal({2, 6}, 2)},
       {{"column", int64_t{4}}, {"transposed", false}}},
      {"sum_rows", "sum_rows", {normal({2, 3, 4})}},
      {"sum_rows onto", "sum_rows", {normal({3, 4}), normal({4}, 1)}},
      {"embedding", "embedding", {normal({5, 3}), ids({2, 4}, 5)}},
      {"embedding with padding",
       "embedding",
       {normal({5, 3}), ints({2, 2}, {4, 1, 2, 4})},
       {{"padding", int64_t{3}}}},
      {"embedding of one id again and again", "embedding", {normal({5, 3}), ids({2, 4}, 1)}},
  };
  for (const auto& row : rows) EXPECT_LT(derivative_error(row), kDerivativeTolerance) << row.name;
}

TEST(Linear, GivesKnownValues) {
  const RefTensor x = values({1, 2}, {1, 2});
  EXPECT_EQ(evaluate("linear", {x, values({2, 2}, {1, 10, 100, 1000})}, kPlain)[0].data,
            (std::vector<double>{21, 2100}));
  EXPECT_EQ(evaluate("linear", {x, values({2, 2}, {1, 10, 100, 1000})}, kTransposed)[0].data,
            (std::vector<double>{201, 2010}));
  EXPECT_EQ(evaluate("linear", {x, values({1, 2}, {3, 4}), values({1}, {5})}, kPlain)[0].data,
            (std::vector<double>{16}));
  EXPECT_EQ(evaluate("embedding", {values({3, 2}, {1, 2, 3, 4, 5, 6}), ints({2, 1}, {2, 0})})[0].data,
            (std::vector<double>{5, 6, 1, 2}));
  EXPECT_EQ(evaluate("sum_rows", {values({2, 2}, {1, 2, 3, 4})})[0].data, (std::vector<double>{4, 6}));
}

TEST(Linear, AddsToColumns) {
  const Tensors in = {values({1, 2}, {1, 2}), values({2, 2}, {1, 10, 100, 1000}),
                      values({1, 4}, {1, 2, 3, 4})};
  EXPECT_EQ(evaluate("linear_add", in, {{"column", int64_t{1}}, {"transposed", false}})[0].data,
            (std::vector<double>{1, 23, 2103, 4}));
}

TEST(Linear, GradientsAccumulate) {
  const RefTensor x = normal({2, 3, 4}), dy = normal({2, 3, 5}, 1), tokens = ids({2, 3}, 6);
  const auto check = [](std::string_view op, Tensors in, const Attrs& attrs, Shape shape) {
    const RefTensor acc = normal(shape, 9);
    const RefTensor plain = evaluate(op, in, attrs)[0];
    in.push_back(acc);
    EXPECT_LT(distance(evaluate(op, in, attrs)[0], evaluate("add", {acc, plain})[0]), 1e-14) << op;
  };
  check("linear_dw", {x, dy}, kPlain, {5, 4});
  check("linear_dw", {x, dy}, kTransposed, {4, 5});
  check("sum_rows", {dy}, {}, {5});
  check("embedding_grad", {dy, tokens}, {{"rows", int64_t{6}}}, {6, 5});
  const RefTensor total = normal({6, 5}, 3);
  const RefTensor grad = evaluate("embedding_grad", {dy, tokens}, {{"rows", int64_t{6}}})[0];
  // Padding tokens add nothing, in any of the three forms.
  const Attrs padded{{"rows", int64_t{2}}, {"padding", int64_t{0}}};
  const Tensors one = {values({1, 3, 1}, {7, 8, 9}), ints({1, 3}, {1, 0, 1})};
  EXPECT_EQ(evaluate("embedding_grad", one, padded)[0].data, (std::vector<double>{0, 16}));
  EXPECT_EQ(evaluate("embedding_grad", {one[0], one[1], values({2, 1}, {1, 2})}, padded)[0].data,
            (std::vector<double>{1, 18}));
  EXPECT_EQ(
      evaluate("embedding_grad_add", {values({2, 1}, {1, 2}), one[0], one[1]}, {{"padding", int64_t{0}}})[0]
          .data,
      (std::vector<double>{1, 18}));
  EXPECT_EQ(evaluate("embedding_grad_add", {total, dy, tokens})[0].data,
            evaluate("add", {total, grad})[0].data);
}

TEST(Linear, UntouchedRowsOfTheTableAreTheNeutralElement) {
  const RefTensor grad =
      evaluate("embedding_grad", {values({1, 1, 1}, {7}), ints({1, 1}, {1})}, {{"rows", int64_t{3}}})[0];
  EXPECT_TRUE(std::signbit(grad.data[0]));
  EXPECT_EQ(grad.data[1], 7);
}

TEST(Linear, CountsItsOperations) {
  ir::Graph graph;
  Builder b(graph, ops::find_op);
  const ValueId y = ops::linear(b, ops::fill(b, {2, 3, 4}, 1), ops::fill(b, {5, 4}, 1), {});
  const ir::Cost cost = ir::op_cost(graph, graph.op(graph.value(y).producer));
  EXPECT_EQ(cost.flops, 2 * 6 * 4 * 5);
  EXPECT_EQ(cost.bytes, 4 * (24 + 20 + 30));
}

TEST(Linear, SaysWhatDoesNotFit) {
  const std::vector<ErrorCase> rows = {
      {"linear",
       {f32({2, 3}), f32({4, 5})},
       kPlain,
       "linear: inner dimensions differ: x [2,3], weight [4,5]"},
      {"linear",
       {f32({2, 3}), f32({4, 3})},
       kTransposed,
       "linear: inner dimensions differ: x [2,3], weight [4,3]"},
      {"linear", {f32({2, 3}), f32({3})}, kPlain, "linear: weight must have two axes: weight [3]"},
      {"linear", {f32({2, 3}), f32({4, 3}), f32({3})}, kPlain, "linear: bias must be [4], is [3]"},
      {"linear", {f32({2, 3})}, kPlain, "linear: takes (x, weight, bias?), given 1 operands"},
      {"linear",
       {f32({int64_t{1} << 30, 1}), f32({int64_t{1} << 30, 1})},
       kPlain,
       "linear: a result would be [1073741824,1073741824], beyond 2^48 elements or 6 axes"},
      {"linear_add",
       {f32({2, 3}), f32({4, 3}), f32({2, 6})},
       {{"column", int64_t{3}}},
       "linear_add: columns beyond the base: weight [4,3], base [2,6]"},
      {"linear_add",
       {f32({2, 3}), f32({4, 3}), f32({2, 6})},
       {{"column", int64_t{-1}}},
       "linear_add: columns beyond the base: weight [4,3], base [2,6]"},
      {"linear_add",
       {f32({2, 3}), f32({4, 3}), f32({3, 6})},
       {{"column", int64_t{0}}},
       "linear_add: rows differ: x [2,3], base [3,6]"},
      {"linear_dw", {f32({2, 3}), f32({3, 3})}, kPlain, "linear_dw: rows differ: x [2,3], dy [3,3]"},
      {"linear_dw",
       {f32({2, 3}), f32({2, 4}), f32({3, 4})},
       kPlain,
       "linear_dw: acc must be [4,3], is [3,4]"},
      {"sum_rows", {f32({2, 3}), f32({2})}, {}, "sum_rows: acc must be [3], is [2]"},
      {"embedding", {f32({2, 3}), f32({1})}, {}, "embedding: ids must be i32, is f32[1]"},
      {"embedding", {f32({2}), i32({1})}, {}, "embedding: table must have two axes: table [2]"},
      {"embedding",
       {f32({2, 3}), i32({1, 1, 1, 1, 1, 1})},
       {},
       "embedding: ids have too many axes: ids [1,1,1,1,1,1]"},
      {"embedding_grad",
       {f32({2, 3}), i32({3})},
       {{"rows", int64_t{4}}},
       "embedding_grad: tokens differ: dy [2,3], ids [3]"},
      {"embedding_grad",
       {f32({2, 3}), i32({2})},
       {{"rows", int64_t{-4}}},
       "embedding_grad: rows -4 out of range"},
      {"embedding_grad_add",
       {f32({4, 2}), f32({2, 3}), i32({2})},
       {},
       "embedding_grad_add: widths differ: total [4,2], dy [2,3]"},
  };
  for (const auto& row : rows) EXPECT_EQ(operand_error(row), row.what);
}

}  // namespace
}  // namespace plimsoll::ops_testing
