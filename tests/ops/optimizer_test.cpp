// The update: norm, clipping, AdamW, and the sweeps.
#include <gtest/gtest.h>

#include <limits>

#include "ops/loss_scale.h"
#include "ops/op_testing.h"
#include "ops/rounding.h"
#include "ops/update_rules.h"

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
  return values({2, ops::kAdamwFields}, rows);
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

TEST(LossScale, MovesAsGradScalers) {
  const ops::LossScaling scaling{.growth_factor = 2, .backoff_factor = 0.5, .growth_interval = 2};
  std::array<float, ops::kScalerFields> scaler = {4, 0, 0};
  // Whether each step's gradients were finite, and scale and clean steps after it: as
  // torch.amp.GradScaler(init_scale=4, growth_interval=2) has them.
  const std::vector<std::pair<bool, std::array<float, 2>>> steps = {
      {true, {4, 1}}, {true, {8, 0}},  {true, {8, 1}}, {false, {4, 0}},
      {true, {4, 1}}, {false, {2, 0}}, {true, {2, 1}}, {true, {4, 0}}};
  for (const auto& [finite, after] : steps) {
    scaler = ops::next_scaler(scaler, scaling, finite);
    EXPECT_EQ((std::array{scaler[ops::kScale], scaler[ops::kCleanSteps]}), after);
    EXPECT_EQ(scaler[ops::kSkipped], finite ? 0 : 1);
  }
}

TEST(LossScale, DoesNotGrowToInfinityButCountsAnew) {
  const auto next = ops::next_scaler({0x1p127F, 0, 0}, {.growth_factor = 2, .growth_interval = 1}, true);
  EXPECT_EQ(next[ops::kScale], 0x1p127F);
  EXPECT_EQ(next[ops::kCleanSteps], 0);
}

TEST(LossScale, UnscalesBeforeItClips) {
  const RefTensor scaler = values({3}, {8, 0, 0});
  const auto clipped = evaluate("unscale", {values({1}, {32}), scaler}, {{"max_norm", 1.0}});
  EXPECT_EQ(clipped[0].data[0], 4);
  EXPECT_NEAR(clipped[1].data[0], 0.25 / 8, 1e-7);
  EXPECT_EQ(evaluate("unscale", {values({1}, {32}), scaler})[1].data[0], 0.125);
  for (const double overflow : {HUGE_VAL, std::nan("")})
    EXPECT_TRUE(std::isnan(evaluate("unscale", {values({1}, {overflow}), scaler})[1].data[0]));
}

/// A table of two groups for any rule: fields from 0.3 to 1.
RefTensor groups_of(const ops::UpdateRule& rule) {
  RefTensor table = positive({2, rule.num_fields}, 0.3, 9);
  for (double& field : table.data) field = std::min(field, 1.0);
  return table;
}
/// Parameter, gradient and positive states.
Tensors operands_of(const ops::UpdateRule& rule, const Shape& shape, uint32_t salt) {
  Tensors tensors = {normal(shape, salt), normal(shape, salt + 1)};
  for (size_t s = 0; s < rule.states.size(); ++s)
    tensors.push_back(positive(shape, 0.1, salt + 2 + static_cast<uint32_t>(s)));
  return tensors;
}

TEST(Optimizer, AFactorThatIsNoNumberSkipsTheStep) {
  for (const ops::UpdateRule& rule : ops::update_rules()) {
    Tensors x = operands_of(rule, {7}, 3);
    Tensors kept = {x[0]};
    kept.insert(kept.end(), x.begin() + 2, x.end());
    x.insert(x.end(), {values({1}, {NAN}), groups_of(rule)});
    EXPECT_EQ(distance(evaluate(std::string(rule.name), x, {{"group", int64_t{0}}}), kept), 0) << rule.name;
  }
}

TEST(Optimizer, TheSweepIsWhatItReplaces) {
  for (const ops::UpdateRule& rule : ops::update_rules()) {
    const RefTensor clip = values({1}, {0.4}), groups = groups_of(rule);
    Tensors all = {clip, groups}, apart;
    for (const int64_t group : {1, 0}) {
      Tensors x = operands_of(rule, group == 1 ? Shape{2, 3} : Shape{5}, static_cast<uint32_t>(10 * group));
      all.insert(all.end(), x.begin(), x.end());
      x.insert(x.end(), {clip, groups});
      const Tensors one = evaluate(std::string(rule.name), x, {{"group", group}});
      apart.insert(apart.end(), one.begin(), one.end());
    }
    EXPECT_EQ(distance(evaluate(std::string(rule.multi_tensor), all, {{"group", Ints{1, 0}}}), apart), 0)
        << rule.name;
  }
  const RefTensor x = normal({2, 3}, 1), y = normal({5}, 5);
  EXPECT_EQ(evaluate("sum_squares_sweep", {x, y})[0].data,
            (std::vector{evaluate("sum_squares", {x})[0].data[0], evaluate("sum_squares", {y})[0].data[0]}));
}

/// rate 0.1, decay 0.5, momentum 0.9, a quarter damped.
TEST(Optimizer, SgdIsItsFormula) {
  const RefTensor p = values({2}, {1, -2}), g = values({2}, {4, 8}), buffer = values({2}, {10, -10}),
                  half = values({1}, {0.5});
  const auto table = [](double nesterov) {
    return values({1, ops::kSgdFields}, {0.1, 0.5, 0.9, 0.75, nesterov});
  };
  const Attrs group{{"group", int64_t{0}}};
  // Clipped and decayed gradients: 2 + 0.5 = 2.5 and 4 - 1 = 3.
  EXPECT_LT(distance(evaluate("sgd", {p, g, half, table(0)}, group)[0], values({2}, {0.75, -2.3})), 1e-12);
  const Tensors plain = evaluate("sgd_momentum", {p, g, buffer, half, table(0)}, group);
  EXPECT_LT(distance(plain[1], values({2}, {10.875, -6.75})), 1e-12);
  EXPECT_LT(distance(plain[0], values({2}, {1 - 1.0875, -2 + 0.675})), 1e-12);
  const Tensors ahead = evaluate("sgd_momentum", {p, g, buffer, half, table(1)}, group);
  EXPECT_LT(distance(ahead[1], plain[1]), 1e-12);
  EXPECT_LT(distance(ahead[0], values({2}, {1 - 0.1 * (2.5 + 9.7875), -2 - 0.1 * (3 - 6.075)})), 1e-12);
}

RefTensor stored_as(DType dtype, RefTensor t) {
  t.type.dtype = dtype;
  for (double& v : t.data) v = ops::rounded(v, dtype);
  return t;
}

/// A master, its copy, and moments in bf16, beside the plain update of the same values.
TEST(Optimizer, CopiesAndRoundsAsItIsTold) {
  const RefTensor p = normal({40}, 1), g = normal({40}, 2), m = normal({40}, 3), v = positive({40}, 0.1, 4);
  const RefTensor clip = values({1}, {0.5});
  const Attrs plain{{"group", int64_t{1}}};
  Attrs copying = plain, rounding = plain;
  copying.set("copy", std::string("bf16"));
  rounding.set("rounded", std::string("bf16"));
  const Tensors expected = evaluate("adamw", {p, g, m, v, clip, kGroups}, plain);
  const Tensors copied = evaluate("adamw", {p, g, m, v, clip, kGroups}, copying);
  ASSERT_EQ(copied.size(), 4U);
  EXPECT_EQ(copied[0].data, expected[0].data);
  EXPECT_EQ(to_string(copied[3].type), "bf16[40]");
  EXPECT_EQ(evaluate("adamw", {p, g, m, v, clip, kGroups}, rounding)[1].data,
            evaluate("adamw", {p, stored_as(DType::kBf16, g), m, v, clip, kGroups}, plain)[1].data);
  EXPECT_EQ(evaluate("sum_squares", {g}, {{"rounded", std::string("bf16")}})[0].data,
            evaluate("sum_squares", {stored_as(DType::kBf16, g)})[0].data);
}

TEST(Optimizer, StochasticRoundingKeepsTheMean) {
  const int64_t n = 4096;
  const RefTensor p = stored_as(DType::kBf16, reference::constant({DType::kF32, {n}}, 1.0));
  const RefTensor g = reference::constant({DType::kF32, {n}}, 1.0), random = ints({4}, {5, 6, 7, 0});
  const RefTensor table = values({1, ops::kSgdFields}, {0.001, 0, 0, 1, 0});
  const auto step = [&](int64_t key) {
    return evaluate("sgd", {p, g, values({1}, {1}), table, random}, {{"group", int64_t{0}}, {"key", key}})[0]
        .data;
  };
  double sum = 0;
  for (const double v : step(1)) {
    EXPECT_TRUE(v == 1.0 || v == 1.0 - 0x1p-8) << v;  // the two neighbours of 0.999
    sum += v;
  }
  EXPECT_NEAR(sum / static_cast<double>(n), 0.999, 1e-4);
  EXPECT_NE(step(1), step(2));
  EXPECT_EQ(step(1), step(1));
}

TEST(Optimizer, AWindowDrawsForItsElementsOfTheWhole) {
  const int64_t n = 64, cut = 20;
  const RefTensor random = ints({4}, {5, 6, 7, 0}), table = values({1, ops::kSgdFields}, {0.001, 0, 0, 1, 0});
  const auto step = [&](int64_t count, int64_t first) {
    const RefTensor p = stored_as(DType::kBf16, reference::constant({DType::kF32, {count}}, 1.0));
    const RefTensor g = reference::constant({DType::kF32, {count}}, 1.0);
    return evaluate("sgd", {p, g, values({1}, {1}), table, random},
                    {{"group", int64_t{0}}, {"key", int64_t{3}}, {"first", first}})[0]
        .data;
  };
  std::vector<double> both = step(cut, 0);
  const std::vector<double> rest = step(n - cut, cut);
  both.insert(both.end(), rest.begin(), rest.end());
  EXPECT_EQ(both, step(n, 0));
  EXPECT_NE(step(n - cut, 0), rest);
}

TEST(Optimizer, UpdatesConsumeParametersAndStates) {
  const auto consumed = [](const char* name, int32_t inputs, int32_t outputs) {
    ir::Op op;
    op.def = ops::find_op(name);
    for (int32_t i = 0; i < inputs; ++i) op.inputs.push_back({i});
    for (int32_t i = inputs; i < inputs + outputs; ++i) op.outputs.push_back({i});
    return ir::op_consumes(op);
  };
  using Aliases = std::vector<ir::Alias>;
  EXPECT_EQ(consumed("adamw", 6, 3), (Aliases{{0, 0}, {1, 2}, {2, 3}}));
  EXPECT_EQ(consumed("sgd", 4, 1), (Aliases{{0, 0}}));
  EXPECT_EQ(consumed("adamw_sweep", 10, 6), (Aliases{{0, 2}, {1, 4}, {2, 5}, {3, 6}, {4, 8}, {5, 9}}));
  EXPECT_EQ(consumed("sgd_sweep", 6, 2), (Aliases{{0, 2}, {1, 4}}));
  EXPECT_EQ(consumed("sgd_momentum_sweep", 8, 4), (Aliases{{0, 2}, {1, 4}, {2, 5}, {3, 7}}));
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
      {"adamw",
       {p, p, p, p, one, groups},
       {{"group", int64_t{0}}, {"first", int64_t{6}}},
       "adamw: a window begins at a multiple of 4 elements"},
      {"sgd", {p, p, one, f32({2, 4})}, first, "sgd: groups must be [n,5]: groups [2,4]"},
      {"sgd_momentum", {p, p, one, one, f32({2, 5})}, first, "sgd_momentum: buffer must be [2], is [1]"},
      {"sgd_sweep",
       {one, f32({2, 5}), p, p, p},
       {{"group", Ints{0, 1}}},
       "sgd_sweep: takes clip, groups and (param, grad) for each of 2 groups, given 5 operands"},
      {"adamw",
       {p, p, p, p, one, groups},
       {{"group", int64_t{0}}, {"copy", std::string("i32")}},
       "adamw: copy must be bf16 or f16"},
      {"adamw",
       {{DType::kBf16, {2}}, p, p, p, one, groups},
       {{"group", int64_t{0}}, {"copy", std::string("bf16")}},
       "adamw: a copy is of an f32 parameter"},
      {"sgd",
       {{DType::kF16, {2}}, p, one, f32({2, 5}), i32({4})},
       {{"group", int64_t{0}}, {"key", int64_t{1}}},
       "sgd: stochastic rounding is to bf16, not to f16"},
      {"sgd",
       {p, p, one, f32({2, 5})},
       {{"group", int64_t{0}}, {"key", int64_t{1}}},
       "sgd: takes (param, grad, clip, groups, random), given 4 operands"},
      {"clip_scale", {one}, {{"max_norm", 0.0}}, "clip_scale: max_norm must be positive"},
      {"global_norm", {f32({1, 1})}, {}, "global_norm: squares must have one axis: squares [1,1]"},
      {"global_norm", {}, {}, "global_norm: takes (squares), given 0 operands"},
      {"sum_squares", {i32({2})}, {}, "sum_squares: x must be f32, bf16 or f16, is i32[2]"},
      {"sum_squares_sweep",
       {f32({2}), i32({2})},
       {},
       "sum_squares_sweep: x must be f32, bf16 or f16, is i32[2]"},
  };
  for (const auto& row : rows) EXPECT_EQ(operand_error(row), row.what);
}

}  // namespace
}  // namespace plimsoll::ops_testing
