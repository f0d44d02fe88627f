// The choice among windows against small cases worked out by hand.
#include "engine/best_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace plimsoll::engine {
namespace {

/// A window of a first token, one of the question, and four of the context with two bytes each from `from`
/// on.
struct Logits {
  std::vector<float> begins, ends;
  std::vector<int32_t> begin_bytes, end_bytes;
  Logits(std::vector<float> b, std::vector<float> e, int32_t from = 0)
      : begins(std::move(b)), ends(std::move(e)) {
    for (int32_t i = 0; i < 4; ++i)
      begin_bytes.push_back(from + 2 * i), end_bytes.push_back(from + 2 * i + 2);
  }
  [[nodiscard]] WindowLogits window() const { return {begins, ends, 2, begin_bytes, end_bytes}; }
};

TEST(BestAnswers, TakesTheBestPairOfAllWindows) {
  BestAnswers best({});
  const Logits first({9, 9, 1, 0, 0, 0}, {9, 9, 0, 2, 0, 0}),
      second({0, 0, 0, 0, 3, 0}, {0, 0, 0, 0, 0, 1}, 6);
  best.add(first.window());
  best.add(second.window());
  const BestAnswers::Choice choice = best.take();
  EXPECT_EQ(choice.best.span, (tokenizers::Span{10, 14}));
  EXPECT_DOUBLE_EQ(choice.best.logit, 4);
  EXPECT_EQ(choice.all.size(), 20U);
  double sum = 0;
  for (const ScoredAnswer& each : choice.all) sum += each.probability;
  EXPECT_NEAR(sum, 1, 1e-12);
  EXPECT_FALSE(choice.null_odds);
  // The next question knows nothing of this one.
  best.add(first.window());
  EXPECT_EQ(best.take().best.span, (tokenizers::Span{0, 4}));
}

TEST(BestAnswers, AnswersThatEndBeforeTheyBeginOrAreTooLongAreNone) {
  const Logits window({0, 0, 0, 0, 0, 5}, {0, 0, 6, 0, 0, 1});
  BestAnswers best({.max_answer_tokens = 2});
  best.add(window.window());
  EXPECT_EQ(best.take().best.span, (tokenizers::Span{6, 8}));  // 5 to 5; 5 to 2 is none, 2 to 5 too long
  BestAnswers single({.max_answer_tokens = 1});
  single.add(window.window());
  for (const ScoredAnswer& each : single.take().all) EXPECT_EQ(each.span.end - each.span.begin, 2U);
}

TEST(BestAnswers, OnlyTheLikeliestAreCombined) {
  // With one begin and one end, both of the first token, nothing of the context is left.
  BestAnswers best({.n_best = 1});
  best.add(Logits({9, 0, 1, 0, 0, 0}, {9, 0, 2, 0, 0, 0}).window());
  const BestAnswers::Choice choice = best.take();
  EXPECT_EQ(choice.best.span, tokenizers::Span{});
  EXPECT_DOUBLE_EQ(choice.best.probability, 1);
  // Of equal logits the earlier token.
  BestAnswers equal({.n_best = 1});
  equal.add(Logits({0, 0, 1, 1, 1, 1}, {0, 0, 1, 1, 1, 1}).window());
  EXPECT_EQ(equal.take().best.span, (tokenizers::Span{0, 2}));
}

TEST(BestAnswers, StretchesOfSpacesAreNone) {
  Logits window({0, 0, 9, 1, 0, 0}, {0, 0, 9, 1, 0, 0});
  window.begin_bytes[0] = window.end_bytes[0] = 2;  // a token of spaces, an empty stretch where they end
  BestAnswers best({.max_answer_tokens = 1});
  best.add(window.window());
  EXPECT_EQ(best.take().best.span, (tokenizers::Span{2, 4}));
  // It does not stand for no answer either.
  BestAnswers maybe({.n_best = 1, .null_threshold = 0});
  maybe.add(window.window());
  const BestAnswers::Choice choice = maybe.take();
  EXPECT_FALSE(choice.null_odds);
  EXPECT_EQ(choice.all.size(), 2U);
  EXPECT_EQ(choice.all.back().span, tokenizers::Span{});
}

TEST(BestAnswers, ProbabilitiesAreOfTheKeptOnes) {
  BestAnswers best({.n_best = 2, .max_answer_tokens = 1});
  best.add(Logits({0, 0, 3, 1, 0, 0}, {0, 0, 3, 1, 0, 0}).window());
  const auto all = best.take().all;
  ASSERT_EQ(all.size(), 2U);
  EXPECT_DOUBLE_EQ(all[0].probability, 1 / (1 + std::exp(-4.0)));
  EXPECT_DOUBLE_EQ(all[1].probability, std::exp(-4.0) / (1 + std::exp(-4.0)));
}

TEST(BestAnswers, WhatIsNotANumberEndsNothing) {
  std::vector<float> broken(6, NAN);
  broken[3] = 1;
  const Logits window(broken, broken);
  BestAnswers best({.null_threshold = 0});
  best.add(window.window());
  EXPECT_LE(best.take().best.span.end, 8U);
}

TEST(BestAnswers, NoAnswerWinsWhereItExceedsTheThreshold) {
  const Logits first({2, 0, 1, 0, 0, 0}, {2, 0, 2, 0, 0, 0}),
      second({1, 0, 0, 0, 0, 0}, {1.5F, 0, 0, 0, 0, 0}, 6);
  const auto choose = [&](double threshold) {
    BestAnswers best({.null_threshold = threshold});
    best.add(first.window());
    best.add(second.window());
    return best.take();
  };
  // The least of the windows: 2.5 against 3 of the best answer.
  EXPECT_DOUBLE_EQ(*choose(0).null_odds, -0.5);
  EXPECT_EQ(choose(0).best.span, (tokenizers::Span{0, 2}));
  EXPECT_EQ(choose(-0.5).best.span, (tokenizers::Span{0, 2}));
  EXPECT_EQ(choose(-0.6).best.span, tokenizers::Span{});
  // It is kept, however unlikely.
  BestAnswers many({.n_best = 2, .null_threshold = 0});
  many.add(Logits({-9, 0, 5, 4, 3, 2}, {-9, 0, 5, 4, 3, 2}).window());
  const auto all = many.take().all;
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all.back().span, tokenizers::Span{});
}

}  // namespace
}  // namespace plimsoll::engine
