// Scores of answers as evaluate's squad_v2 has them.
#include "corpora/labelled/answer_score.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plimsoll::corpora {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(CountedWords, WithoutCasePunctuationArticlesAndBlanks) {
  EXPECT_THAT(counted_words(" The  quick, brown-fox\tA\n"), ElementsAre("quick", "brownfox"));
  EXPECT_THAT(counted_words("theatre an-other a b"), ElementsAre("theatre", "another", "b"));
  EXPECT_THAT(counted_words("a.m."), ElementsAre("am"));  // punctuation goes before articles
  EXPECT_THAT(counted_words("the\xE2\x80\x94"
                            "a end"),
              ElementsAre("\xE2\x80\x94", "end"));  // a dash that stays
  EXPECT_THAT(counted_words("\xC3\x89T\xC3\x89 \xCE\xA3\xCE\x91\xCE\xA3"),
              ElementsAre("\xC3\xA9t\xC3\xA9", "\xCF\x83\xCE\xB1\xCF\x82"));  // ÉTÉ ΣΑΣ, a sigma at the end
  EXPECT_THAT(counted_words("x\xC2\xA0y\x1Fz"), ElementsAre("x", "y", "z"));
  EXPECT_THAT(counted_words("The... a!"), IsEmpty());
  EXPECT_THAT(counted_words("\xFF"), ElementsAre("\xEF\xBF\xBD"));
}

std::vector<double> figures(const AnswerScores& scores) {
  std::vector<double> found;
  for (const Score& each : scores.values()) found.push_back(each.value);
  return found;
}

TEST(AnswerScores, TakeTheBestOfTheRightAnswers) {
  AnswerScores scores;
  EXPECT_THAT(scores.values(), IsEmpty());
  const std::vector<Answer> right = {{"Paris", 0}, {"the city of Paris", 0}};
  scores.add("paris!", right);
  EXPECT_THAT(figures(scores), ElementsAre(100, 100));
  scores.add("city Paris Paris", right);  // of 3 words 2 are among the 3
  EXPECT_THAT(figures(scores), ElementsAre(50, testing::DoubleEq(100 * (1 + 2.0 / 3) / 2)));
}

TEST(AnswerScores, NoAnswerIsRightWhereThereIsNone) {
  AnswerScores scores;
  scores.add("", {});
  scores.add("x", {});
  EXPECT_THAT(figures(scores), ElementsAre(50, 50));
  const std::vector<Answer> right = {{"x", 0}};
  scores.add("", right);
  EXPECT_THAT(figures(scores),
              ElementsAre(testing::DoubleEq(100.0 / 3), testing::DoubleEq(100.0 / 3), 0, 0, 50, 50));
  EXPECT_EQ(scores.size(), 3);
}

TEST(AnswerScores, FindTheBestThreshold) {
  AnswerScores scores;
  const std::vector<Answer> right = {{"x", 0}};
  const auto add = [&](std::string_view answer, const std::vector<Answer>& answers, double odds) {
    scores.add(answer, answers);
    scores.add_odds(answer, answers, odds);
  };
  add("x", right, -2);     // right, and surest
  add("y", {}, -1);        // there is none
  add("x z", right, 0.5);  // half right
  add("x", right, 0.25);
  // Answered up to -2: 2 of 4. Up to 0.25 one is lost and one won; up to 0.5 two thirds more by f1.
  const std::vector<Score> found = scores.values();
  ASSERT_EQ(found.size(), 10U);
  EXPECT_EQ(found[6].name, "best_exact");
  EXPECT_EQ(found[6].value, 50);
  EXPECT_EQ(found[7].value, -2);
  EXPECT_EQ(found[8].name, "best_f1");
  EXPECT_NEAR(found[8].value, 100 * (2 + 2.0 / 3) / 4, 1e-12);
  EXPECT_EQ(found[9].value, 0.5);
  scores.add("x", right);
  EXPECT_EQ(scores.values().size(), 6U) << "one has no odds";
  AnswerScores none;
  none.add("y", {}), none.add_odds("y", {}, -3);
  none.add("y", right), none.add_odds("", right, 1);
  EXPECT_EQ(none.values()[6].value, 50) << "none is answered";
  EXPECT_EQ(none.values()[7].value, 0);
}

}  // namespace
}  // namespace plimsoll::corpora
