// Reductions over axes: derivatives, known values, operands that do not fit.
#include "ops/reduce.h"

#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace plimsoll::ops_testing {
namespace {

Attrs over(const char* kind, std::vector<int64_t> axes, bool keep = false) {
  return {{"kind", kind}, {"axes", std::move(axes)}, {"keep", keep}};
}

TEST(Reduce, DerivativesMatchFiniteDifferences) {
  for (const char* kind : {"sum", "mean", "max"})
    for (const std::vector<int64_t>& axes :
         std::vector<std::vector<int64_t>>{{0}, {1}, {2}, {0, 2}, {0, 1, 2}, {}})
      for (const bool keep : {false, true}) {
        const DerivativeCase row{kind, "reduce", {normal({2, 3, 4})}, over(kind, axes, keep)};
        EXPECT_LT(derivative_error(row), kDerivativeTolerance) << kind << " " << axes.size() << " " << keep;
      }
  const DerivativeCase goes_on{"acc", "reduce", {normal({2, 3}), normal({3}, 1)}, over("sum", {0})};
  EXPECT_LT(derivative_error(goes_on), kDerivativeTolerance);
}

TEST(Reduce, GivesKnownValues) {
  const RefTensor x = values({2, 3}, {1, 5, -2, 4, 0, 3});
  EXPECT_EQ(evaluate("reduce", {x}, over("sum", {0}))[0].data, (std::vector<double>{5, 5, 1}));
  EXPECT_EQ(evaluate("reduce", {x}, over("mean", {1}))[0].data, (std::vector<double>{4.0 / 3, 7.0 / 3}));
  EXPECT_EQ(evaluate("reduce", {x}, over("max", {1}))[0].data, (std::vector<double>{5, 4}));
  EXPECT_EQ(evaluate("reduce", {x}, over("max", {1}, true))[0].type.shape, (Shape{2, 1}));
  EXPECT_EQ(evaluate("reduce", {x}, over("sum", {0, 1}))[0].type.shape, (Shape{1}));
  EXPECT_EQ(evaluate("reduce", {x, values({3}, {10, 20, 30})}, over("sum", {0}))[0].data,
            (std::vector<double>{15, 25, 31}));
  EXPECT_EQ(ops::parse_reduce("median"), std::nullopt);
}

/// Equal elements share the cotangent, as in torch.amax.
TEST(Reduce, EqualMaximaShare) {
  const DerivativeCase row{"max", "reduce", {values({4}, {2, 1, 2, 0})}, over("max", {0})};
  EXPECT_EQ(gradients(row, {values({1}, {3})}, {true})[0].data, (std::vector<double>{1.5, 0, 1.5, 0}));
}

TEST(Reduce, SaysWhatDoesNotFit) {
  const std::vector<ErrorCase> rows = {
      {"reduce",
       {f32({2, 3})},
       over("sum", {2}),
       "reduce: axes must be axes of x, rising, each once: x [2,3]"},
      {"reduce",
       {f32({2, 3})},
       over("sum", {1, 0}),
       "reduce: axes must be axes of x, rising, each once: x [2,3]"},
      {"reduce", {f32({2, 3})}, over("median", {1}), "reduce: kind must be sum, mean or max"},
      {"reduce", {f32({2, 3}), f32({3})}, over("sum", {1}), "reduce: acc must be [2], is [3]"},
      {"reduce", {f32({2, 3}), f32({2})}, over("mean", {1}), "reduce: a sum is accumulated, in f32"},
      {"reduce", {i32({2, 3})}, over("sum", {1}), "reduce: x must be f32, bf16 or f16, is i32[2,3]"},
  };
  for (const auto& row : rows) EXPECT_EQ(operand_error(row), row.what);
}

}  // namespace
}  // namespace plimsoll::ops_testing
