// Views, joins, copies, constants.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/op_testing.h"

namespace plimsoll::ops_testing {
namespace {

using Ints = std::vector<int64_t>;

TEST(Structure, DerivativesMatchFiniteDifferences) {
  const std::vector<DerivativeCase> rows = {
      {"reshape", "reshape", {normal({2, 6})}, {{"shape", Ints{3, 2, 2}}}},
      {"split, every part used", "split", {normal({2, 6})}, {{"sizes", Ints{1, 2, 3}}}, {0, 1, 2}},
      {"split, one part used", "split", {normal({2, 6})}, {{"sizes", Ints{1, 2, 3}}}, {1}},
      {"split into one", "split", {normal({2, 6})}, {{"sizes", Ints{6}}}, {0}},
      {"concat", "concat", {normal({2, 1}), normal({2, 3}, 1), normal({2, 2}, 2)}},
      {"concat of one", "concat", {normal({2, 1})}},
      {"copy", "copy", {normal({2, 3})}},
  };
  for (const auto& row : rows) EXPECT_LT(derivative_error(row), kDerivativeTolerance) << row.name;
}

TEST(Structure, SplitAndConcatUndoEachOther) {
  const RefTensor x = values({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensors parts = evaluate("split", {x}, {{"sizes", Ints{2, 1}}});
  EXPECT_EQ(parts[0].data, (std::vector<double>{1, 2, 4, 5}));
  EXPECT_EQ(parts[1].data, (std::vector<double>{3, 6}));
  EXPECT_EQ(evaluate("concat", parts)[0].data, x.data);
}

TEST(Structure, AnUnusedPartOfASplitAddsNoBit) {
  const Tensors fill = evaluate("fill", {}, {{"shape", Ints{2}}, {"value", -0.0}});
  EXPECT_TRUE(std::signbit(fill[0].data[0] + -0.0));
  EXPECT_FALSE(std::signbit(fill[0].data[0] + 0.0));
}

TEST(Structure, SaysWhatDoesNotFit) {
  const std::vector<ErrorCase> rows = {
      {"reshape",
       {f32({2, 3})},
       {{"shape", Ints{7}}},
       "reshape: x does not hold the elements of [7]: x [2,3]"},
      {"reshape",
       {f32({2, 3})},
       {{"shape", Ints{-2, -3}}},
       "reshape: shape must be of 1 to 6 positive extents: x [2,3]"},
      {"reshape",
       {f32({1})},
       {{"shape", Ints{}}},
       "reshape: shape must be of 1 to 6 positive extents: x [1]"},
      {"split",
       {f32({2, 3})},
       {{"sizes", Ints{1, 1}}},
       "split: sizes [1,1] do not add up to the last axis: x [2,3]"},
      {"split",
       {f32({2, 3})},
       {{"sizes", Ints{4, -1}}},
       "split: sizes [4,-1] do not add up to the last axis: x [2,3]"},
      {"split",
       {f32({2, 3})},
       {{"sizes", Ints{}}},
       "split: sizes [] do not add up to the last axis: x [2,3]"},
      {"concat",
       {f32({2, 3}), f32({3, 3})},
       {},
       "concat: parts differ in more than the last axis: part [2,3], part [3,3]"},
      {"concat",
       {f32({2}), i32({2})},
       {},
       "concat: parts differ in more than the last axis: part [2], part [2]"},
      {"concat", {}, {}, "concat: takes (part), given 0 operands"},
      {"fill",
       {},
       {{"shape", Ints{int64_t{1} << 40, int64_t{1} << 40}}, {"value", 0.0}},
       "fill: shape must be of 1 to 6 positive extents"},
      {"state",
       {},
       {{"name", "w"}},
       "state: the type comes from the state's declaration; read it with Builder::read"},
  };
  for (const auto& row : rows) EXPECT_EQ(operand_error(row), row.what);
}

}  // namespace
}  // namespace plimsoll::ops_testing
