#include "library/own_session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "library/c_model.h"

namespace plimsoll::library {
namespace {

using testing::CBatch;
using testing::CBuilder;
using testing::CPlan;
using testing::CSession;
using testing::ids;
using testing::numbers;
using testing::slope;

constexpr const char* kUniform = R"({"init": "uniform", "bound": 0.5})";

/// y = linear(gelu(linear(x))), mean squared error to labels; `checkpoints` keeps the hidden part's input
/// alone.
void mlp(CBuilder& b, int64_t batch = 6, bool checkpoints = false, double dropout = 0) {
  const pls_value x = b.input("x", "float32", {batch, 5}), y = b.input("y", "float32", {batch, 3});
  b.push("module", "hidden");
  if (checkpoints) b.push("checkpoint", nullptr);
  pls_value h = b.op("linear", {x, b.parameter("hidden.weight", {7, 5}, kUniform),
                                b.parameter("hidden.bias", {7}, kUniform)});
  h = b.op("gelu", {h});
  if (checkpoints) b.pop();
  b.pop();
  if (dropout > 0) h = b.op("dropout", {h}, ("{\"p\": " + std::to_string(dropout) + "}").c_str());
  const pls_value out = b.op("linear", {h, b.parameter("out.weight", {3, 7}, kUniform)});
  b.loss(b.op("mse", {out, y}));
}

CBatch& mlp_batch(CBatch& batch, int64_t rows = 6, uint32_t seed = 1) {
  return batch.set("x", {rows, 5}, numbers(static_cast<size_t>(rows) * 5, seed))
      .set("y", {rows, 3}, numbers(static_cast<size_t>(rows) * 3, seed + 100));
}

constexpr const char* kSgd =
    R"({"training": {"optimizer": "sgd", "learning_rate": 0.1}, "runtime": {"threads": 2}})";

TEST(OwnSession, GradientsFollowTheLoss) {
  CBuilder b;
  mlp(b);
  const CPlan plan(b, kSgd);
  ASSERT_EQ(plan.failed.code, PLS_OK) << plan.failed.message;
  CSession session(plan, R"({"seed": 3})");
  ASSERT_EQ(session.failed.code, PLS_OK) << session.failed.message;
  CBatch batch;
  mlp_batch(batch);
  const double loss = session.gradients(batch);
  ASSERT_EQ(session.failed.code, PLS_OK) << session.failed.message;
  const std::vector<float> weight = session.read("hidden.weight", 35, "gradient"),
                           bias = session.read("hidden.bias", 7, "gradient");
  EXPECT_NEAR(loss, session.evaluate(batch), 1e-6);
  for (const size_t i : {size_t{0}, size_t{17}, size_t{34}})
    EXPECT_NEAR(static_cast<double>(weight[i]), slope(session, batch, "hidden.weight", 35, i), 2e-3) << i;
  EXPECT_NEAR(static_cast<double>(bias[2]), slope(session, batch, "hidden.bias", 7, 2), 2e-3);
}

TEST(OwnSession, AStepIsTheOptimizersRule) {
  CBuilder b;
  mlp(b);
  const CPlan plan(b, kSgd);
  CSession session(plan);
  CBatch batch;
  mlp_batch(batch);
  const std::vector<float> before = session.read("out.weight", 21);
  session.gradients(batch);
  const std::vector<float> gradient = session.read("out.weight", 21, "gradient");
  const testing::Step step = session.step(batch, 0.25);
  ASSERT_EQ(session.failed.code, PLS_OK) << session.failed.message;
  EXPECT_EQ(step.index, 1);
  const std::vector<float> after = session.read("out.weight", 21);
  for (size_t i = 0; i < 21; ++i) EXPECT_NEAR(after[i], before[i] - 0.25F * gradient[i], 1e-6F) << i;
  EXPECT_GT(step.grad_norm, 0);
  const testing::Step next = session.step(batch);  // at the plan's own rate
  EXPECT_EQ(next.index, 2);
  EXPECT_LT(next.loss, step.loss);
}

TEST(OwnSession, LearnsUntilTheLossIsSmall) {
  CBuilder b;
  mlp(b);
  const CPlan plan(b, R"({"training": {"optimizer": "adamw", "learning_rate": 0.02}})");
  CSession session(plan);
  CBatch batch;
  mlp_batch(batch);
  const double first = session.step(batch).loss;
  double last = first;
  for (int i = 0; i < 300; ++i) last = session.step(batch).loss;
  EXPECT_LT(last, 0.05 * first);
}

TEST(OwnSession, PartsAreAveraged) {
  CBuilder b;
  mlp(b);
  const CPlan plan(b, kSgd);
  CSession session(plan);
  CBatch one, two, both, parts;
  mlp_batch(one, 6, 1);
  mlp_batch(two, 6, 2);
  std::vector<float> x = numbers(30, 1), y = numbers(18, 101);
  const std::vector<float> x2 = numbers(30, 2), y2 = numbers(18, 102);
  parts.set("x", {6, 5}, x).set("y", {6, 3}, y).set("x", {6, 5}, x2, 1).set("y", {6, 3}, y2, 1);
  x.insert(x.end(), x2.begin(), x2.end());
  y.insert(y.end(), y2.begin(), y2.end());
  both.set("x", {12, 5}, x).set("y", {12, 3}, y);
  const double loss_one = session.gradients(one);
  const std::vector<float> gradient_one = session.read("out.weight", 21, "gradient");
  const double loss_two = session.gradients(two);
  const std::vector<float> gradient_two = session.read("out.weight", 21, "gradient");
  const double loss_both = session.gradients(both, 2);
  ASSERT_EQ(session.failed.code, PLS_OK) << session.failed.message;
  const std::vector<float> gradient = session.read("out.weight", 21, "gradient");
  EXPECT_NEAR(loss_both, (loss_one + loss_two) / 2, 1e-6);
  for (size_t i = 0; i < 21; ++i)
    EXPECT_NEAR(gradient[i], (gradient_one[i] + gradient_two[i]) / 2, 1e-6F) << i;
  session.gradients(parts, 2);
  EXPECT_EQ(session.read("out.weight", 21, "gradient"), gradient);
}

/// To the spacing of bf16's numbers, as each part is rounded onto the sum.
TEST(OwnSession, GradientsAreReadFromAccumulatorsInBf16) {
  CBuilder b, c;
  mlp(b);
  mlp(c);
  const CPlan plain(b, kSgd), narrow(c, R"({"training": {"optimizer": "sgd", "learning_rate": 0.1,
                                            "state": {"accumulators": "bf16"}}, "runtime": {"threads": 2}})");
  ASSERT_EQ(narrow.failed.code, PLS_OK) << narrow.failed.message;
  CSession one(plain, R"({"seed": 3})"), two(narrow, R"({"seed": 3})");
  CBatch batch;
  mlp_batch(batch, 12);
  one.gradients(batch, 2);
  two.gradients(batch, 2);
  const std::vector<float> exact = one.read("out.weight", 21, "gradient"),
                           rounded = two.read("out.weight", 21, "gradient");
  ASSERT_EQ(two.failed.code, PLS_OK) << two.failed.message;
  float largest = 0;
  for (const float g : exact) largest = std::max(largest, std::fabs(g));
  for (size_t i = 0; i < 21; ++i) EXPECT_NEAR(rounded[i], exact[i], 2 * largest / 128) << i;
  EXPECT_NE(rounded, exact);
}

TEST(OwnSession, KeepsNoAverages) {
  CBuilder b;
  mlp(b);
  const CPlan plan(b, R"({"training": {"ema_decay": 0.99}})");
  EXPECT_EQ(plan.failed.code, PLS_INVALID_ARGUMENT);
  EXPECT_NE(plan.failed.message.find("training.ema_decay"), std::string::npos) << plan.failed.message;
}

TEST(OwnSession, LooksChangeNothing) {
  CBuilder b, c;
  mlp(b, 6, false, 0.5);
  mlp(c, 6, false, 0.5);
  const CPlan plan(b, kSgd), same(c, kSgd);
  CSession looks(plan, R"({"seed": 7})"), plain(same, R"({"seed": 7})");
  CBatch batch, other;
  mlp_batch(batch);
  mlp_batch(other, 6, 9);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(looks.evaluate(other), looks.evaluate(other));  // without dropout
    looks.gradients(other);
    EXPECT_EQ(looks.step(batch).loss, plain.step(batch).loss);
  }
  EXPECT_EQ(looks.read("hidden.weight", 35), plain.read("hidden.weight", 35));
}

TEST(OwnSession, DropoutFollowsTheSeed) {
  CBuilder b;
  mlp(b, 6, false, 0.5);
  const CPlan plan(b, kSgd);
  CSession one(plan, R"({"seed": 1})"), again(plan, R"({"seed": 1})"), other(plan, R"({"seed": 2})");
  CBatch batch;
  mlp_batch(batch);
  const double loss = one.step(batch).loss;
  EXPECT_EQ(again.step(batch).loss, loss);
  EXPECT_NE(other.step(batch).loss, loss);
}

TEST(OwnSession, WhatIsNotFiniteChangesNothing) {
  CBuilder b;
  mlp(b);
  const CPlan plan(b, R"({"training": {"optimizer": "adamw"}})");
  CSession session(plan);
  CBatch good, bad;
  mlp_batch(good);
  std::vector<float> x = numbers(30, 1);
  x[7] = std::numeric_limits<float>::quiet_NaN();
  bad.set("x", {6, 5}, x).set("y", {6, 3}, numbers(18, 3));
  session.step(good);
  const std::vector<float> before = session.read("hidden.weight", 35);
  session.step(bad);
  EXPECT_EQ(session.failed.code, PLS_DIVERGED) << session.failed.message;
  EXPECT_EQ(session.read("hidden.weight", 35), before);
  EXPECT_EQ(pls_session_steps(session.get()), 1);
  CSession plain(plan);
  plain.step(good);
  EXPECT_EQ(session.step(good).loss, plain.step(good).loss);  // the moments too are as they were
  EXPECT_EQ(session.read("hidden.weight", 35), plain.read("hidden.weight", 35));
}

/// A plan of steps in one part: the same bits as with accumulators in f32.
TEST(OwnSession, StepsOfOnePartNeedNoAccumulators) {
  CBuilder b;
  mlp(b, 6, false, 0.5);
  for (const char* optimizer : {"adamw", "sgd", "muon", "adafactor"}) {
    const std::string settings =
        R"({"training": {"max_grad_norm": 0.01, "optimizer": ")" + std::string(optimizer) + R"(")";
    const CPlan plan(b, (settings + R"(, "gradient_accumulation_steps": 1}})").c_str());
    const CPlan accumulates(b, (settings + "}}").c_str());
    ASSERT_EQ(plan.failed.code, PLS_OK) << plan.failed.message;
    CSession one(plan), other(accumulates);
    CBatch batch, twice;
    mlp_batch(batch);
    mlp_batch(twice, 12);
    for (int i = 0; i < 3; ++i) {
      const testing::Step step = one.step(batch), expected = other.step(batch);
      ASSERT_EQ(one.failed.code, PLS_OK) << one.failed.message;
      EXPECT_EQ(step.loss, expected.loss) << optimizer << i;
      EXPECT_EQ(step.grad_norm, expected.grad_norm) << optimizer << i;
    }
    EXPECT_EQ(one.read("hidden.weight", 35), other.read("hidden.weight", 35)) << optimizer;
    EXPECT_EQ(one.evaluate(batch), other.evaluate(batch));
    one.gradients(batch);
    EXPECT_EQ(one.failed.code, PLS_INVALID_ARGUMENT);
    EXPECT_NE(one.failed.message.find("accumulators"), std::string::npos) << one.failed.message;
    one.step(twice, 0.1, 2);
    EXPECT_EQ(one.failed.code, PLS_INVALID_ARGUMENT);
    EXPECT_EQ(pls_session_steps(one.get()), 3);
  }
  const CPlan two(b, R"({"training": {"gradient_accumulation_steps": 2}})");
  EXPECT_EQ(two.failed.code, PLS_INVALID_ARGUMENT) << two.failed.message;
}

TEST(OwnSession, AccumulatorsTakeNoMemoryWhereStepsHaveOnePart) {
  constexpr int64_t kSide = 256;
  CBuilder b;
  const pls_value y = b.input("y", "float32", {4, kSide});
  pls_value h = b.input("x", "float32", {4, kSide});
  for (const char* name : {"a", "b", "c", "d"})
    h = b.op("linear", {h, b.parameter(name, {kSide, kSide}, kUniform)});
  b.loss(b.op("mse", {h, y}));
  const CPlan plan(b, R"({"training": {"gradient_accumulation_steps": 1}})"), accumulates(b, "{}");
  ASSERT_EQ(plan.failed.code, PLS_OK) << plan.failed.message;
  EXPECT_LT(plan.peak(), accumulates.peak());
}

TEST(OwnSession, WhatIsNotFiniteChangesNothingInOnePart) {
  CBuilder b;
  mlp(b);
  const CPlan plan(b, R"({"training": {"optimizer": "adamw", "gradient_accumulation_steps": 1}})");
  CSession session(plan), plain(plan);
  CBatch good, bad;
  mlp_batch(good);
  std::vector<float> x = numbers(30, 1);
  x[7] = std::numeric_limits<float>::quiet_NaN();
  bad.set("x", {6, 5}, x).set("y", {6, 3}, numbers(18, 3));
  session.step(good);
  session.step(bad);
  EXPECT_EQ(session.failed.code, PLS_DIVERGED) << session.failed.message;
  EXPECT_EQ(pls_session_steps(session.get()), 1);
  plain.step(good);
  EXPECT_EQ(session.step(good).loss, plain.step(good).loss);
  EXPECT_EQ(session.read("hidden.weight", 35), plain.read("hidden.weight", 35));
}

TEST(OwnSession, AStaticLossScaleDividesOut) {
  CBuilder b, c;
  mlp(b);
  mlp(c);
  const CPlan plain(b, kSgd),
      scaled(c, R"({"training": {"optimizer": "sgd", "learning_rate": 0.1, "loss_scale": 1024}})");
  ASSERT_EQ(scaled.failed.code, PLS_OK) << scaled.failed.message;
  CSession one(plain), two(scaled);
  CBatch batch;
  mlp_batch(batch);
  const testing::Step a = one.step(batch), d = two.step(batch);
  EXPECT_EQ(d.loss_scale, 1024);
  EXPECT_EQ(a.loss, d.loss);
  EXPECT_NEAR(a.grad_norm, d.grad_norm, 1e-6);
  EXPECT_EQ(one.read("hidden.weight", 35), two.read("hidden.weight", 35));
}

TEST(OwnSession, CheckpointsChangeNoBit) {
  CBuilder b, c;
  mlp(b, 64, false, 0.3);
  mlp(c, 64, true, 0.3);
  const CPlan plain(b, kSgd), checkpointed(c, kSgd);
  EXPECT_LE(checkpointed.peak(), plain.peak());
  CSession one(plain), two(checkpointed);
  CBatch batch;
  mlp_batch(batch, 64);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(one.step(batch).loss, two.step(batch).loss);
  EXPECT_EQ(one.read("hidden.weight", 35), two.read("hidden.weight", 35));
}

TEST(OwnSession, ParametersAreReadWrittenAndSeen) {
  CBuilder b;
  mlp(b);
  const CPlan plan(b, kSgd);
  CSession session(plan);
  const std::vector<float> values = numbers(21, 5);
  session.write("out.weight", values);
  EXPECT_EQ(session.read("out.weight", 21), values);
  const float* data = nullptr;
  int64_t count = 0;
  pls_error* error = nullptr;
  testing::ok(pls_session_view(session.get(), "out.weight", &data, &count, &error), error);
  EXPECT_EQ(std::vector<float>(data, data + count), values);
  session.read("out.wieght", 21);
  EXPECT_EQ(session.failed.code, PLS_INVALID_ARGUMENT);
  EXPECT_NE((session.failed.message + session.failed.hint).find("out.weight"), std::string::npos);
  session.write("out.weight", numbers(20, 5));
  EXPECT_EQ(session.failed.code, PLS_INVALID_ARGUMENT);
  session.read("out.weight", 21, "gradient");
  EXPECT_EQ(session.failed.code, PLS_INVALID_ARGUMENT);
  session.write("out.weight", std::vector<float>(21, std::nanf("")));
  EXPECT_EQ(session.failed.code, PLS_BAD_DATA);
}

}  // namespace
}  // namespace plimsoll::library
