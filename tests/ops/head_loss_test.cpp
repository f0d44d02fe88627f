// Cross-entropy and the head with its loss.
#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace plimsoll::ops_testing {
namespace {

Attrs head(bool grad, bool transposed) {
  return {{"grad", grad}, {"transposed", transposed}, {"chunk_tokens", int64_t{256}}};
}
const RefTensor kTargets = ints({2, 3}, {1, -100, 0, 4, 2, -100});

TEST(Loss, DerivativesMatchFiniteDifferences) {
  const RefTensor x = normal({2, 3, 4});
  const std::vector<DerivativeCase> rows = {
      {"cross_entropy", "cross_entropy", {normal({2, 3, 5}), kTargets, kLossScale}, {}, {0}, 2},
      {"cross_entropy of every token",
       "cross_entropy",
       {normal({4, 5}), ids({4}, 5), kLossScale},
       {},
       {0},
       2},
      {"cross_entropy onto",
       "cross_entropy",
       {normal({2, 3, 5}), kTargets, kLossScale, normal({1})},
       {},
       {0},
       2},
      {"head_loss", "head_loss", {x, normal({5, 4}, 1), kTargets, kLossScale}, head(true, false), {0}, 3},
      {"head_loss transposed",
       "head_loss",
       {x, normal({4, 5}, 1), kTargets, kLossScale},
       head(true, true),
       {0},
       3},
      {"head_loss of the head alone",
       "head_loss_dw",
       {x, normal({5, 4}, 1), kTargets, kLossScale},
       {{"chunk_tokens", int64_t{256}}},
       {0},
       3,
       {0}},
  };
  for (const auto& row : rows) EXPECT_LT(derivative_error(row), kDerivativeTolerance) << row.name;
}

TEST(Loss, GivesKnownValues) {
  const Tensors r =
      evaluate("cross_entropy", {values({1, 2, 2}, {0, 0, 1000, 0}), ints({1, 2}, {1, 0}), kLossScale});
  EXPECT_LT(distance(r[0], values({1}, {std::log(2.0)})), 1e-15);
  EXPECT_LT(distance(r[1], values({1, 2}, {std::log(2.0), 1000})), 1e-15);
}

TEST(Loss, AllTargetsIgnoredGiveZero) {
  const RefTensor none = ints({1, 2}, {-100, -100});
  const Tensors r = evaluate({normal({1, 2, 3}), none, kLossScale}, [](Builder& b, const auto& v) {
    const auto loss = ops::cross_entropy(b, v[0], v[1], v[2], {});
    return std::vector{loss.loss, b.op("cross_entropy_grad", {v[0], v[1], loss.lse, v[2]})};
  });
  EXPECT_EQ(r[0].data[0], 0);
  for (const double g : r[1].data) EXPECT_EQ(g, 0);
}

TEST(Loss, HeadLossIsWhatItReplaces) {
  for (const bool transposed : {false, true}) {
    const Tensors x = {normal({2, 3, 4}), normal(transposed ? Shape{4, 5} : Shape{5, 4}, 1),
                       kTargets,          kLossScale,
                       normal({1}, 2),    normal(transposed ? Shape{4, 5} : Shape{5, 4}, 3)};
    const Tensors fused = evaluate("head_loss", x, head(true, transposed));
    const Tensors apart = evaluate(x, [&](Builder& b, const auto& v) {
      const ValueId logits = ops::linear(b, v[0], v[1], {}, transposed);
      const auto loss = ops::cross_entropy(b, logits, v[2], v[3], v[4]);
      const ValueId d = b.op("cross_entropy_grad", {logits, v[2], loss.lse, v[3]});
      return std::vector{loss.loss, ops::linear(b, d, v[1], {}, !transposed),
                         b.op("linear_dw", {v[0], d, v[5]}, {{"transposed", transposed}})};
    });
    EXPECT_LT(distance(fused, apart), 1e-12);
    const Tensors alone = evaluate("head_loss", {x[0], x[1], x[2], x[3], x[4]}, head(false, transposed));
    ASSERT_EQ(alone.size(), 1U);
    EXPECT_EQ(alone[0].data, fused[0].data);
  }
}

/// Without dw where the head is frozen, without dx where all below it is.
TEST(Loss, HeadLossLeavesOutWhatNobodyWants) {
  const Tensors x = {normal({2, 3, 4}), normal({5, 4}, 1), kTargets,
                     kLossScale,        normal({1}, 2),    normal({5, 4}, 3)};
  const Tensors both = evaluate("head_loss", x, head(true, false));
  Attrs only_dx = head(true, false), only_dw{{"chunk_tokens", int64_t{256}}};
  only_dx.set("only_dx", true);
  const Tensors dx = evaluate("head_loss", {x[0], x[1], x[2], x[3], x[4]}, only_dx);
  EXPECT_EQ(distance(dx, {both[0], both[1]}), 0);
  EXPECT_EQ(distance(evaluate("head_loss_dw", x, only_dw), {both[0], both[2]}), 0);
  only_dx.set("chunk_tokens", int64_t{64});  // nothing is summed over tokens
  EXPECT_EQ(distance(evaluate("head_loss", {x[0], x[1], x[2], x[3], x[4]}, only_dx), {both[0], both[1]}), 0);
}

TEST(Loss, SaysWhatDoesNotFit) {
  const TensorType one = f32({1}), logits = f32({2, 3, 5}), targets = i32({2, 3}), x = f32({2, 3, 4}),
                   w = f32({5, 4});
  Attrs odd = head(true, false);
  odd.set("chunk_tokens", int64_t{100});
  const std::vector<ErrorCase> rows = {
      {"cross_entropy", {logits, i32({2, 5}), one}, {}, "cross_entropy: targets must be [2,3], is [2,5]"},
      {"cross_entropy", {logits, targets, f32({2})}, {}, "cross_entropy: grad_scale must be [1], is [2]"},
      {"cross_entropy", {logits, f32({2, 3}), one}, {}, "cross_entropy: targets must be i32, is f32[2,3]"},
      {"cross_entropy_grad",
       {logits, targets, f32({2}), one},
       {},
       "cross_entropy_grad: lse must be [2,3], is [2]"},
      {"head_loss",
       {x, f32({5, 3}), targets, one},
       head(true, false),
       "head_loss: inner dimensions differ: x [2,3,4], weight [5,3]"},
      {"head_loss", {x, w, i32({2}), one}, head(true, false), "head_loss: targets must be [2,3], is [2]"},
      {"head_loss",
       {x, w, targets, one, {}, f32({4, 5})},
       head(true, false),
       "head_loss: acc_dw must be [5,4], is [4,5]"},
      {"head_loss", {x, w, targets, one, {}, w}, head(false, false), "head_loss: acc_dw needs dw"},
      {"head_loss",
       {x, w, targets, one},
       odd,
       "head_loss: chunk_tokens must be a positive multiple of 256, is 100"},
  };
  for (const auto& row : rows) EXPECT_EQ(operand_error(row), row.what);
}

}  // namespace
}  // namespace plimsoll::ops_testing
