// Gradients of random networks against central differences along random directions, in double precision.
#include "passes/training/autodiff.h"

#include <gtest/gtest.h>

#include <cmath>

#include "passes/training.h"

namespace plimsoll::passes {
namespace {

using fixtures::Tail;
using passes::autodiff;

double loss_at(const fixtures::Trained& t, const std::map<std::string, ir::RefTensor>& states) {
  fixtures::Trained moved{t.graph, {}, states, {}};
  return fixtures::interpret(moved, reference::Precision::kF64).at("loss").data[0];
}

TEST(Autodiff, DirectionalDerivatives) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    if (fixtures::is_large(seed)) continue;
    const auto trained = fixtures::train_program(seed, fixtures::no_passes(), fixtures::Tail::kGradients);
    ASSERT_TRUE(trained) << "seed " << seed << ": " << trained.error().message();
    const auto after = fixtures::interpret(*trained, reference::Precision::kF64);
    fixtures::Dice dice(seed * 977);
    constexpr double kStep = 1e-5;
    auto plus = trained->states;
    auto minus = trained->states;
    double expected = 0;
    for (const auto& [name, grad] : after) {
      if (!name.starts_with("grad.")) continue;
      const std::string param = name.substr(5);
      for (size_t i = 0; i < grad.data.size(); ++i) {
        const auto row = static_cast<int64_t>(i) / grad.type.shape.dim(-1);
        // The padding id's row has no gradient from the tokens, whatever the loss does.
        const bool fixed = param == "table" && row == fixtures::kPaddingId;
        const double direction = fixed ? 0 : 2 * dice.uniform() - 1;
        expected += direction * grad.data[i];
        plus.at(param).data[i] += kStep * direction;
        minus.at(param).data[i] -= kStep * direction;
      }
    }
    const double scale = trained->states.at("grad_scale").data[0];
    const double measured = scale * (loss_at(*trained, plus) - loss_at(*trained, minus)) / (2 * kStep);
    EXPECT_NEAR(measured, expected, 1e-6 * (1 + std::abs(expected))) << "seed " << seed;
  }
}

struct Tied {
  ir::Graph graph;
  ir::ValueId weight, x, loss;
};

Tied tied() {
  Tied t;
  ir::Builder b(t.graph, ops::find_op);
  t.weight = b.state({.name = "w", .type = {ir::DType::kF32, ir::Shape{4, 4}}});
  t.x = b.state(
      {.name = "x", .type = {ir::DType::kF32, ir::Shape{1, 3, 4}}, .state_class = ir::StateClass::kInput});
  const auto targets = b.state({.name = "t", .type = {ir::DType::kI32, ir::Shape{1, 3}}});
  const auto scale = b.state({.name = "s", .type = {ir::DType::kF32, ir::Shape{1}}});
  const auto h = ops::linear(b, ops::linear(b, t.x, t.weight, {}), t.weight, {});
  t.loss = ops::cross_entropy(b, h, targets, scale, {}).loss;
  return t;
}

TEST(Autodiff, ListsEachUseOfAParameter) {
  Tied t = tied();
  const auto report = autodiff(t.graph, {.loss = t.loss, .wrt = {t.weight}});
  ASSERT_TRUE(report);
  ASSERT_EQ(report->contributions[0].size(), 2U);
  const auto& sum = t.graph.op(t.graph.value(report->cotangents[0]).producer);
  EXPECT_EQ(sum.def->name, "add");
  EXPECT_EQ(sum.inputs, report->contributions[0]);  // the last use first
}

TEST(Autodiff, InvalidWhereTheLossDoesNotDependOnIt) {
  Tied t = tied();
  ir::Builder b(t.graph, ops::find_op);
  const auto other = b.state({.name = "other", .type = {ir::DType::kF32, ir::Shape{4}}});
  const auto report = autodiff(t.graph, {.loss = t.loss, .wrt = {other}});
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->cotangents[0].valid());
  EXPECT_TRUE(report->contributions[0].empty());
}

TEST(Autodiff, SeedForAnyValue) {
  Tied t = tied();
  ir::Builder b(t.graph, ops::find_op);
  const auto y = ops::silu(b, t.x);
  const auto missing = autodiff(t.graph, {.loss = y, .wrt = {t.x}});
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message().find("needs a cotangent"), std::string::npos);
  const auto seed = ops::fill(b, {1, 3, 4}, 1.0);
  const auto report = autodiff(t.graph, {.loss = y, .wrt = {t.x}, .seed = seed});
  ASSERT_TRUE(report);
  EXPECT_EQ(t.graph.op(t.graph.value(report->cotangents[0]).producer).def->name, "silu_grad");
}

TEST(Autodiff, NamesTheOpWithoutDerivative) {
  Tied t = tied();
  ir::Builder b(t.graph, ops::find_op);
  b.set_layer("optimizer");
  const auto squares = ops::sum_squares(b, t.x);
  const auto report = autodiff(t.graph, {.loss = squares, .wrt = {t.x}, .seed = squares});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().message(), "autodiff: 'sum_squares' has no derivative: optimizer");
}

}  // namespace
}  // namespace plimsoll::passes
