// Predictions as lines.
#include "engine/predict_line.h"

#include <gtest/gtest.h>

#include <cmath>

namespace plimsoll::engine {
namespace {

using enum io::ProblemType;

std::string line(io::ProblemType problem, const std::vector<float>& logits) {
  std::vector<std::string> names = {"a", "b", "c"};
  names.resize(logits.size());
  return io::to_json(prediction({problem, names}, logits));
}

TEST(PredictLine, OfOneLabelIsTheLikeliest) {
  EXPECT_EQ(line(kSingleLabel, {0, 0}), R"({"label": "a", "score": 0.5, "logits": [0, 0]})");
  const io::Tree far = prediction({kSingleLabel, {"a", "b"}}, std::vector<float>{-2000, 2000});
  EXPECT_EQ(far.find("label")->text, "b");
  EXPECT_EQ(far.find("score")->number, 1);
  const io::Tree three = prediction({kSingleLabel, {"a", "b", "c"}}, std::vector<float>{1, 3, 2});
  EXPECT_NEAR(three.find("score")->number, std::exp(3) / (std::exp(1) + std::exp(2) + std::exp(3)), 1e-15);
}

TEST(PredictLine, OfSeveralLabelsAreThoseAboveAHalf) {
  EXPECT_EQ(line(kMultiLabel, {0, 1000, -1000}),
            R"({"label": ["b"], "score": [0.5, 1, 0], "logits": [0, 1000, -1000]})");
}

TEST(PredictLine, OfNumbersIsTheValue) {
  EXPECT_EQ(line(kRegression, {1.5F}), R"({"label": null, "score": 1.5, "logits": [1.5]})");
  EXPECT_EQ(line(kRegression, {1.5F, -2}), R"({"label": null, "score": [1.5, -2], "logits": [1.5, -2]})");
}

TEST(PredictLine, WhatIsNotANumberIsNull) {
  EXPECT_EQ(line(kRegression, {NAN}), R"({"label": null, "score": null, "logits": [null]})");
}

}  // namespace
}  // namespace plimsoll::engine
