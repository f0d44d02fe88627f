// The update: norm, clipping, AdamW, and the sweeps.
#include <gtest/gtest.h>

#include <limits>

#include "ops/op_testing.h"

namespace plimsoll::ops_testing {
namespace {

using Ints = std::vector<int64_t>;

/// A row of the table for rate 0.1, decay 0.01, betas 0.9 and 0.99, eps 1e-8, at step `t`.
std::vector<double> group_row(double t) {
  return {1 - 0.1 * 0.01,
          0.9,
          1 - 0.9,
          0.99,
          1 - 0.99,
          1e-8,
          0.1 / (1 - std::pow(0.9, t)),
          std::sqrt(1 - std::pow(0.99, t))};
}
const RefTensor kGroups = [] {
  auto rows = group_row(1);
  const auto second = group_row(7);
  rows.insert(rows.end(), second.begin(), second.end());
  return values({2, ops::kGroupFields}, rows);
}();

TEST(Optimizer, NormAndClip) {
  EXPECT_EQ(evaluate("sum_squares", {values({2, 2}, {1, 2, 3, 4})})[0].data[0], 30);
  EXPECT_EQ(evaluate("global_norm", {values({1}, {9}), values({2}, {16, 0})})[0].data[0], 5);
  EXPECT_NEAR(evaluate("clip_scale", {values({1}, {4})}, {{"max_norm", 1.0}})[0].data[0], 0.25, 1e-6);
  EXPECT_EQ(evaluate("clip_scale", {values({1}, {0.5})}, {{"max_norm", 1.0}})[0].data[0], 1);
  EXPECT_TRUE(std::isnan(evaluate("clip_scale", {values({1}, {NAN})}, {{"max_norm", 1.0}})[0].data[0]));
}

TEST(Optimizer, TheFirstStepMovesByTheRate) {
  const RefTensor zero = values({2}, {0, 0});
  const Tensors r = evaluate(
      "adamw", {values({2}, {1, -1}), values({2}, {4, -0.5}), zero, zero, values({1}, {0.5}), kGroups},
      {{"group", int64_t{0}}});
  // m / (1 - beta1) = g and sqrt(v / (1 - beta2)) = |g|, so the parameter moves by the rate towards -sign(g).
  EXPECT_LT(distance(r[0], values({2}, {0.999 - 0.1, -0.999 + 0.1})), 1e-7);
  EXPECT_LT(distance(r[1], values({2}, {0.2, -0.025})), 1e-12);
  EXPECT_LT(distance(r[2], values({2}, {0.04, 0.000625})), 1e-12);
}

TEST(Optimizer, TheSweepIsWhatItReplaces) {
  const Tensors x = {
      values({1}, {0.4}),       kGroups,        normal({2, 3}), normal({2, 3}, 1), normal({2, 3}, 2),
      positive({2, 3}, 0.1, 3), normal({5}, 4), normal({5}, 5), normal({5}, 6),    positive({5}, 0.1, 7)};
  const Tensors sweep = evaluate("adamw_sweep", x, {{"group", Ints{1, 0}}});
  Tensors apart = evaluate("adamw", {x[2], x[3], x[4], x[5], x[0], x[1]}, {{"group", int64_t{1}}});
  const Tensors second = evaluate("adamw", {x[6], x[7], x[8], x[9], x[0], x[1]}, {{"group", int64_t{0}}});
  apart.insert(apart.end(), second.begin(), second.end());
  EXPECT_EQ(distance(sweep, apart), 0);
  EXPECT_EQ(
      evaluate("sum_squares_sweep", {x[3], x[7]})[0].data,
      (std::vector{evaluate("sum_squares", {x[3]})[0].data[0], evaluate("sum_squares", {x[7]})[0].data[0]}));
}

TEST(Optimizer, TheSweepConsumesParametersAndMoments) {
  ir::Op op;
  op.def = ops::find_op("adamw_sweep");
  for (int32_t i = 0; i < 10; ++i) op.inputs.push_back({i});
  for (int32_t i = 10; i < 16; ++i) op.outputs.push_back({i});
  EXPECT_EQ(ir::op_consumes(op), (std::vector<ir::Alias>{{0, 2}, {1, 4}, {2, 5}, {3, 6}, {4, 8}, {5, 9}}));
}

TEST(Optimizer, SaysWhatDoesNotFit) {
  const TensorType p = f32({2}), one = f32({1}), groups = f32({2, 8});
  const Attrs first{{"group", int64_t{0}}};
  const std::vector<ErrorCase> rows = {
      {"adamw", {p, f32({3}), p, p, one, groups}, first, "adamw: grad must be [2], is [3]"},
      {"adamw", {p, p, p, p, p, groups}, first, "adamw: clip must be [1], is [2]"},
      {"adamw", {p, p, p, p, one, f32({2, 7})}, first, "adamw: groups must be [n,8]: groups [2,7]"},
      {"adamw",
       {p, p, p, p, one, groups},
       {{"group", int64_t{2}}},
       "adamw: group 2 is not in the table: groups [2,8]"},
      {"adamw_sweep",
       {one, groups, p, p, p},
       {{"group", Ints{0}}},
       "adamw_sweep: takes clip, groups and (param, grad, m, v) for each of 1 groups, given 5 operands"},
      {"adamw_sweep",
       {one, groups, p, p, p, one},
       {{"group", Ints{0}}},
       "adamw_sweep: v must be [2], is [1]"},
      {"clip_scale", {one}, {{"max_norm", 0.0}}, "clip_scale: max_norm must be positive"},
      {"global_norm", {f32({1, 1})}, {}, "global_norm: squares must have one axis: squares [1,1]"},
      {"global_norm", {}, {}, "global_norm: takes (squares), given 0 operands"},
      {"sum_squares", {i32({2})}, {}, "sum_squares: x must be f32, is i32[2]"},
      {"sum_squares_sweep", {f32({2}), i32({2})}, {}, "sum_squares_sweep: x must be f32, is i32[2]"},
  };
  for (const auto& row : rows) EXPECT_EQ(operand_error(row), row.what);
}

}  // namespace
}  // namespace plimsoll::ops_testing
