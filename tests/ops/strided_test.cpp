// Views by strides, reversed axes, torch.gather: derivatives, known values, operands that do not fit.
#include "ops/strided.h"

#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace plimsoll::ops_testing {
namespace {

using Ints = std::vector<int64_t>;

Attrs slice(int64_t axis, int64_t start, int64_t size, int64_t step) {
  return {{"axis", axis}, {"start", start}, {"size", size}, {"step", step}};
}

TEST(Strided, DerivativesMatchFiniteDifferences) {
  const std::vector<DerivativeCase> rows = {
      {"permute", "permute", {normal({2, 3, 4})}, {{"axes", Ints{2, 0, 1}}}},
      {"expand", "expand", {normal({3, 1})}, {{"shape", Ints{2, 3, 4}}}},
      {"expand a scalar", "expand", {normal({1})}, {{"shape", Ints{2, 3}}}},
      {"slice", "slice", {normal({2, 5, 3})}, slice(1, 1, 2, 2)},
      {"slice of the first axis", "slice", {normal({4, 3})}, slice(0, 1, 2, 1)},
      {"flip", "flip", {normal({2, 3, 2})}, {{"axis", int64_t{1}}}},
      {"gather", "gather", {normal({2, 3}), ids({2, 4}, 3)}, {{"axis", int64_t{1}}}},
      {"gather along the first axis",
       "gather",
       {normal({3, 2, 2}), ids({4, 1, 2}, 3)},
       {{"axis", int64_t{0}}}},
  };
  for (const auto& row : rows) EXPECT_LT(derivative_error(row), kDerivativeTolerance) << row.name;
}

TEST(Strided, GivesKnownValues) {
  const RefTensor x = values({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(evaluate("permute", {x}, {{"axes", Ints{1, 0}}})[0].data,
            (std::vector<double>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(evaluate("slice", {x}, slice(1, 0, 2, 2))[0].data, (std::vector<double>{1, 3, 4, 6}));
  EXPECT_EQ(evaluate("slice", {x}, slice(0, 1, 1, INT64_MAX))[0].data, (std::vector<double>{4, 5, 6}));
  EXPECT_EQ(evaluate("flip", {x}, {{"axis", int64_t{1}}})[0].data, (std::vector<double>{3, 2, 1, 6, 5, 4}));
  EXPECT_EQ(evaluate("expand", {values({2, 1}, {7, 8})}, {{"shape", Ints{2, 2}}})[0].data,
            (std::vector<double>{7, 7, 8, 8}));
  EXPECT_EQ(
      evaluate("slice_grad", {values({1, 2}, {7, 8})},
               {{"axis", int64_t{1}}, {"start", int64_t{1}}, {"step", int64_t{2}}, {"extent", int64_t{5}}})[0]
          .data,
      (std::vector<double>{0, 7, 0, 8, 0}));
  EXPECT_EQ(evaluate("gather", {x, ints({2, 2}, {2, 0, 1, 1})}, {{"axis", int64_t{1}}})[0].data,
            (std::vector<double>{3, 1, 5, 5}));
}

/// Parts of a view of other strides than rows are parts of that view.
TEST(Strided, ViewsOfViews) {
  const auto build = [](Builder& b, const std::vector<ValueId>& in) {
    const ValueId turned = ops::permute(b, in[0], {1, 0});
    return std::vector<ValueId>{ops::split(b, turned, {1, 1})[1], ops::slice(b, turned, 0, 1, 2)};
  };
  const Tensors found = evaluate({values({2, 3}, {1, 2, 3, 4, 5, 6})}, build);
  EXPECT_EQ(found[0].data, (std::vector<double>{4, 5, 6}));
  EXPECT_EQ(found[1].data, (std::vector<double>{2, 5, 3, 6}));
}

TEST(Strided, NoGradientPassesDetach) {
  const DerivativeCase row{"detach", "detach", {normal({3})}};
  EXPECT_TRUE(gradients(row, {normal({3}, 1)}, {true})[0].data.empty());
}

TEST(Strided, SaysWhatDoesNotFit) {
  const std::vector<ErrorCase> rows = {
      {"permute",
       {f32({2, 3})},
       {{"axes", Ints{0, 0}}},
       "permute: axes must name each axis of x once: x [2,3]"},
      {"permute", {f32({2, 3})}, {{"axes", Ints{0}}}, "permute: axes must name each axis of x once: x [2,3]"},
      {"expand", {f32({2, 3})}, {{"shape", Ints{4, 3}}}, "expand: x does not stretch to [4,3]: x [2,3]"},
      {"slice",
       {f32({2, 3})},
       slice(1, 1, 3, 1),
       "slice: start 1, size 3, step 1 reach beyond axis 1: x [2,3]"},
      {"slice", {f32({2, 3})}, slice(2, 0, 1, 1), "slice: there is no axis 2: x [2,3]"},
      {"flip", {f32({2, 3})}, {{"axis", int64_t{-1}}}, "flip: there is no axis -1: x [2,3]"},
      {"gather",
       {f32({2, 3}), i32({3, 1})},
       {{"axis", int64_t{1}}},
       "gather: index does not fit x along axis 1: x [2,3], index [3,1]"},
  };
  for (const auto& row : rows) EXPECT_EQ(operand_error(row), row.what);
}

}  // namespace
}  // namespace plimsoll::ops_testing
