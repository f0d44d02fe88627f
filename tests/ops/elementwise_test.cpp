// Elementwise ops: derivatives, known values, operands that do not fit.
#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace plimsoll::ops_testing {
namespace {

TEST(Elementwise, DerivativesMatchFiniteDifferences) {
  const std::vector<DerivativeCase> rows = {
      {"add", "add", {normal({2, 3}), normal({2, 3}, 1)}},
      {"mul", "mul", {normal({2, 3}), normal({2, 3}, 1)}},
      {"mul by itself in shape 1", "mul", {normal({1}), normal({1}, 1)}},
      {"scale", "scale", {normal({2, 2, 3}), normal({1}, 1)}},
      {"bias_add", "bias_add", {normal({2, 3, 4}), normal({4}, 1)}},
      {"bias_add of rank 1", "bias_add", {normal({5}), normal({5}, 1)}},
      {"silu", "silu", {normal({3, 5})}},
      {"gelu tanh", "gelu", {normal({3, 5})}, {{"approximate", "tanh"}}},
      {"gelu erf", "gelu", {normal({3, 5})}, {{"approximate", "none"}}},
      {"gelu sigmoid", "gelu", {normal({3, 5})}, {{"approximate", "sigmoid"}}},
  };
  for (const auto& row : rows) EXPECT_LT(derivative_error(row), kDerivativeTolerance) << row.name;
}

TEST(Elementwise, GivesKnownValues) {
  const RefTensor x = values({3}, {-1, 0, 2});
  EXPECT_LT(distance(evaluate("silu", {x})[0], values({3}, {-0.2689414213699951, 0, 1.7615941559557649})),
            1e-15);
  EXPECT_LT(distance(evaluate("gelu", {x}, {{"approximate", "none"}})[0],
                     values({3}, {-0.15865525393145707, 0, 1.9544997361036416})),
            1e-15);
  EXPECT_LT(distance(evaluate("gelu", {x}, {{"approximate", "tanh"}})[0],
                     values({3}, {-0.15880800939172324, 0, 1.9545976940877752})),
            1e-15);
  EXPECT_LT(distance(evaluate("gelu", {x}, {{"approximate", "sigmoid"}})[0],
                     values({3}, {-0.1542042340671787, 0, 1.9356586231442083})),
            1e-15);
  EXPECT_EQ(evaluate("add", {x, x})[0].data, (std::vector<double>{-2, 0, 4}));
  EXPECT_EQ(evaluate("mul", {x, x})[0].data, (std::vector<double>{1, 0, 4}));
  EXPECT_EQ(evaluate("scale", {x, values({1}, {3})})[0].data, (std::vector<double>{-3, 0, 6}));
}

TEST(Elementwise, SaysWhatDoesNotFit) {
  const std::vector<ErrorCase> rows = {
      {"add", {f32({2, 3}), f32({3, 2})}, {}, "add: shapes differ: x [2,3], y [3,2]"},
      {"add", {f32({2})}, {}, "add: takes (x, y), given 1 operands"},
      {"mul", {f32({2}), {}}, {}, "mul: y is absent"},
      {"mul", {f32({2}), i32({2})}, {}, "mul: y must be f32, bf16 or f16, is i32[2]"},
      {"scale", {f32({2}), f32({2})}, {}, "scale: s must be [1], is [2]"},
      {"bias_add", {f32({2, 3}), f32({2})}, {}, "bias_add: bias must be [3], is [2]"},
      {"silu", {{DType::kI8, {2}}}, {}, "silu: x must be f32, bf16 or f16, is i8[2]"},
      {"silu_grad", {f32({2}), f32({3})}, {}, "silu_grad: shapes differ: dy [2], x [3]"},
      {"gelu",
       {f32({2})},
       {{"approximate", "erf"}},
       "gelu: approximate must be one of \"none\", \"tanh\", \"sigmoid\""},
      {"gelu_grad",
       {f32({2}), f32({2})},
       {{"approximate", ""}},
       "gelu_grad: approximate must be one of \"none\", \"tanh\", \"sigmoid\""},
  };
  for (const auto& row : rows) EXPECT_EQ(operand_error(row), row.what);
}

}  // namespace
}  // namespace plimsoll::ops_testing
