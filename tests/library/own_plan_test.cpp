#include "library/own_plan.h"

#include <gtest/gtest.h>

#include <string>

#include "library/c_model.h"

namespace plimsoll::library {
namespace {

using testing::CBatch;
using testing::CBuilder;
using testing::CPlan;
using testing::CSession;
using testing::ids;
using testing::slope;

constexpr int64_t kBatch = 2, kTokens = 8, kWidth = 16, kRows = 11;

std::string name_of(int layer, const char* what) { return "layers." + std::to_string(layer) + "." + what; }

/// A language model of a few layers: norm, attention and a gelu MLP each.
void language_model(CBuilder& b, int layers, bool checkpoints = false, int64_t tokens = kTokens) {
  const char* const matrix = R"({"init": "uniform", "bound": 0.3})";
  const char* const ones = R"({"init": "ones"})";
  const pls_value inputs = b.input("ids", "int32", {kBatch, tokens}),
                  labels = b.input("labels", "int32", {kBatch, tokens});
  pls_value x = b.op("embedding", {b.parameter("tokens.weight", {kRows, kWidth},
                                               R"({"init": "normal", "std": 0.5, "kind": "embedding"})"),
                                   inputs});
  for (int l = 0; l < layers; ++l) {
    b.push("module", ("layers." + std::to_string(l)).c_str());
    if (checkpoints) b.push("checkpoint", nullptr);
    const auto linear = [&](const char* what, pls_value of, int64_t out, int64_t in) {
      return b.op("linear", {of, b.parameter(name_of(l, what).c_str(), {out, in}, matrix)});
    };
    const pls_value normed =
        b.op("rms_norm", {x, b.parameter(name_of(l, "norm.weight").c_str(), {kWidth}, ones)});
    const auto heads = [&](pls_value of) {
      return b.op("reshape", {of}, ("{\"shape\": [2, " + std::to_string(tokens) + ", 2, 8]}").c_str());
    };
    const pls_value attended =
        b.op("attention",
             {heads(linear("q", normed, kWidth, kWidth)), heads(linear("k", normed, kWidth, kWidth)),
              heads(linear("v", normed, kWidth, kWidth))},
             R"({"causal": true})");
    const pls_value joined =
        b.op("reshape", {attended}, ("{\"shape\": [2, " + std::to_string(tokens) + ", 16]}").c_str());
    x = b.op("add", {x, linear("o", joined, kWidth, kWidth)});
    x = b.op("add", {x, linear("down", b.op("gelu", {linear("up", x, 64, kWidth)}), kWidth, 64)});
    if (checkpoints) b.pop();
    b.pop();
  }
  const pls_value logits = b.op("linear", {x, b.parameter("head.weight", {kRows, kWidth}, matrix)});
  b.loss(b.op("cross_entropy", {logits, labels}));
}

void language_batch(CBatch& batch, int64_t tokens = kTokens) {
  const auto count = static_cast<size_t>(kBatch * tokens);
  std::vector<int32_t> labels = ids(count, 2, kRows);
  labels[3] = -100;
  batch.set("ids", {kBatch, tokens}, ids(count, 1, kRows)).set("labels", {kBatch, tokens}, labels);
}

std::string settings_of(const std::string& memory) {
  return R"({"training": {"optimizer": "adamw", "learning_rate": 0.01}, "memory": {)" + memory +
         R"(}, "runtime": {"threads": 2, "profile": "built-in"}})";
}

TEST(OwnPlan, ALanguageModelsGradientsFollowItsLoss) {
  CBuilder b;
  language_model(b, 2);
  const CPlan plan(b, settings_of(""));
  ASSERT_EQ(plan.failed.code, PLS_OK) << plan.failed.message;
  CSession session(plan);
  ASSERT_EQ(session.failed.code, PLS_OK) << session.failed.message;
  CBatch batch;
  language_batch(batch);
  session.gradients(batch);
  ASSERT_EQ(session.failed.code, PLS_OK) << session.failed.message;
  const std::vector<float> head = session.read("head.weight", 176, "gradient"),
                           up = session.read("layers.0.up", 64 * 16, "gradient"),
                           q = session.read("layers.1.q", 256, "gradient"),
                           norm = session.read("layers.0.norm.weight", 16, "gradient");
  EXPECT_NEAR(head[40], slope(session, batch, "head.weight", 176, 40), 2e-3);
  EXPECT_NEAR(up[100], slope(session, batch, "layers.0.up", 64 * 16, 100), 2e-3);
  EXPECT_NEAR(q[77], slope(session, batch, "layers.1.q", 256, 77), 2e-3);
  EXPECT_NEAR(norm[4], slope(session, batch, "layers.0.norm.weight", 16, 4), 2e-3);
}

TEST(OwnPlan, SaysWhatItTakes) {
  CBuilder b;
  language_model(b, 2);
  const CPlan plan(b, settings_of(""));
  ASSERT_TRUE(plan.fits());
  const io::Tree json = plan.json();
  constexpr int64_t kParameters = 2 * kRows * 16 + 2 * (4 * 256 + 2 * 1024 + 16);
  EXPECT_EQ(json.find("num_parameters")->integer, kParameters);
  EXPECT_EQ(json.find("peak_bytes")->integer, plan.peak());
  EXPECT_GE(json.find("classes")->find("parameters")->integer, 4 * kParameters);
  EXPECT_GE(json.find("classes")->find("optimizer_state")->integer, 8 * kParameters);
  EXPECT_EQ(json.find("inputs")->items[1].find("name")->text, "labels");
  const char* text = nullptr;
  pls_error* error = nullptr;
  testing::ok(pls_plan_text(plan.get(), "table", &text, &error), error);
  EXPECT_NE(std::string(text).find("parameters"), std::string::npos);
  testing::ok(pls_plan_text(plan.get(), "timeline", &text, &error), error);
  EXPECT_NE(std::string(text).find("<svg"), std::string::npos);
}

TEST(OwnPlan, CheckpointsLowerThePeakWithoutABudget) {
  CBuilder b, c;
  language_model(b, 4, false, 64);
  language_model(c, 4, true, 64);
  const CPlan plain(b, settings_of("")), checkpointed(c, settings_of(""));
  EXPECT_LT(checkpointed.peak(), plain.peak());
  CSession one(plain), two(checkpointed);
  CBatch batch;
  language_batch(batch, 64);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(one.step(batch).loss, two.step(batch).loss);
  EXPECT_EQ(one.read("layers.0.up", 1024), two.read("layers.0.up", 1024));
}

TEST(OwnPlan, TheLeastBudgetFitsAndOneByteLessDoesNot) {
  const auto plan_within = [](int64_t bytes) {
    auto b = std::make_unique<CBuilder>();
    language_model(*b, 3, false, 64);
    return std::make_unique<CPlan>(*b, settings_of("\"budget\": " + std::to_string(bytes)));
  };
  const auto tight = plan_within(20000);
  ASSERT_EQ(tight->failed.code, PLS_OK) << tight->failed.message;
  ASSERT_FALSE(tight->fits());
  CSession refused(*tight);
  EXPECT_EQ(refused.failed.code, PLS_DOES_NOT_FIT);
  const int64_t least = refused.failed.json.find("least_bytes")->integer;
  EXPECT_NE((refused.failed.message + refused.failed.hint).find(std::to_string(least)), std::string::npos);
  const auto fitting = plan_within(least);
  ASSERT_TRUE(fitting->fits());
  EXPECT_LE(fitting->peak(), least);
  EXPECT_FALSE(plan_within(least - 1)->fits());
  // What the budget takes away is memory, no bit.
  const auto roomy = plan_within(int64_t{1} << 30);
  EXPECT_LT(fitting->peak(), roomy->peak());
  CSession one(*fitting), two(*roomy);
  CBatch batch;
  language_batch(batch, 64);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(one.step(batch).loss, two.step(batch).loss);
}

TEST(OwnPlan, AutocastScopesRoundProducts) {
  const auto loss_with = [](const char* precision) {
    CBuilder b;
    if (precision != nullptr) b.push("autocast", precision);
    language_model(b, 1);
    if (precision != nullptr) b.pop();
    const CPlan plan(b, settings_of(""));
    EXPECT_EQ(plan.failed.code, PLS_OK) << plan.failed.message;
    CSession session(plan);
    CBatch batch;
    language_batch(batch);
    return session.evaluate(batch);
  };
  const double exact = loss_with(nullptr), rounded = loss_with("bf16");
  EXPECT_NE(rounded, exact);
  EXPECT_NEAR(rounded, exact, 0.02);
  EXPECT_EQ(loss_with("fp32"), exact);
}

/// As in PyTorch: what nothing reads is no error, and scales no loss.
TEST(OwnPlan, AutocastScopesMayHoldWhatTheLossDoesNotRead) {
  CBuilder b;
  const pls_value x = b.input("x", "float32", {4, 4});
  const pls_value w = b.parameter("w", {4, 4}, R"({"init": "ones"})");
  b.push("autocast", "fp16");
  (void)b.op("matmul", {x, x});
  b.pop();
  b.loss(b.op("mean", {b.op("matmul", {x, w})}));
  const CPlan plan(b, settings_of(""));
  EXPECT_EQ(plan.failed.code, PLS_OK) << plan.failed.message;
}

TEST(OwnPlan, Fp16ScalesTheLossAndSkipsWhatOverflows) {
  CBuilder b;
  b.push("autocast", "fp16");
  language_model(b, 1);
  b.pop();
  const CPlan plan(b, R"({"training": {"loss_scale": {"init_scale": 1e30, "backoff_factor": 1e-6}}})");
  ASSERT_EQ(plan.failed.code, PLS_OK) << plan.failed.message;
  CSession session(plan);
  CBatch batch;
  language_batch(batch);
  const testing::Step first = session.step(batch);
  ASSERT_EQ(session.failed.code, PLS_OK) << session.failed.message;
  EXPECT_TRUE(first.skipped);
  EXPECT_FLOAT_EQ(static_cast<float>(first.loss_scale), 1e30F);
  testing::Step last;
  for (int i = 0; i < 6; ++i) last = session.step(batch);
  EXPECT_FALSE(last.skipped);
  EXPECT_LT(last.loss_scale, 1e30);
  EXPECT_EQ(last.index, 7);
}

TEST(OwnPlan, SettingsAreRefusedWithAHint) {
  CBuilder b;
  language_model(b, 1);
  const CPlan section(b, R"({"trainig": {}})"), key(b, R"({"training": {"lerning_rate": 1}})"), text(b, "[");
  EXPECT_EQ(section.failed.code, PLS_INVALID_ARGUMENT);
  EXPECT_NE(section.failed.hint.find("training"), std::string::npos);
  EXPECT_EQ(key.failed.code, PLS_INVALID_ARGUMENT);
  EXPECT_NE((key.failed.message + key.failed.hint).find("learning_rate"), std::string::npos);
  EXPECT_EQ(text.failed.code, PLS_INVALID_ARGUMENT);
}

TEST(OwnPlan, AParameterThatIsNotUsedIsNamed) {
  CBuilder b;
  const pls_value x = b.input("x", "float32", {4, 3});
  b.parameter("left.over", {3}, nullptr);
  b.loss(b.op("mean", {b.op("linear", {x, b.parameter("w", {2, 3}, nullptr)})}));
  const CPlan plan(b, "{}");
  EXPECT_EQ(plan.failed.code, PLS_INVALID_ARGUMENT);
  EXPECT_NE(plan.failed.message.find("left.over"), std::string::npos);
  CBuilder none;
  none.input("x", "float32", {4, 3});
  EXPECT_EQ(CPlan(none, "{}").failed.code, PLS_INVALID_ARGUMENT);
}

TEST(OwnPlan, ParameterGroupsHaveHyperParametersOfTheirOwn) {
  CBuilder b;
  language_model(b, 1);
  const CPlan plan(b, R"({"training": {"optimizer": "sgd", "learning_rate": 0.1,
                        "param_groups": [{"params": ["head.weight"], "learning_rate": 0}]}})");
  ASSERT_EQ(plan.failed.code, PLS_OK) << plan.failed.message;
  CSession session(plan);
  CBatch batch;
  language_batch(batch);
  const std::vector<float> head = session.read("head.weight", 176), up = session.read("layers.0.up", 1024);
  session.step(batch);
  EXPECT_EQ(session.read("head.weight", 176), head);
  EXPECT_NE(session.read("layers.0.up", 1024), up);
}

}  // namespace
}  // namespace plimsoll::library
