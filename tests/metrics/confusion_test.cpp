// The confusion matrix: what metrics count, and how people see it.
#include "metrics/confusion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "metrics/metrics.h"

namespace plimsoll::metrics {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// Scores whose largest is that of `predicted`.
void add(Metrics& metrics, size_t classes, float label, size_t predicted) {
  std::vector<float> outputs(classes, 0.0F);
  outputs[predicted] = 1;
  metrics.add(outputs, {&label, 1});
}

// sklearn.metrics.confusion_matrix([0, 0, 0, 1, 2, 2], [0, 2, 2, 1, 0, 2]) is [[1, 0, 2], [0, 1, 0], [1, 0,
// 1]].
TEST(Confusion, CountsPredictionsByClass) {
  for (const auto& metrics : {single_label(3), ranked_label(3)}) {
    const std::vector<std::pair<float, size_t>> examples = {{0, 0}, {0, 2}, {0, 2}, {1, 1}, {2, 0}, {2, 2}};
    for (const auto& [label, predicted] : examples) add(*metrics, 3, label, predicted);
    EXPECT_THAT(metrics->confusion(), ElementsAre(1, 0, 2, 0, 1, 0, 1, 0, 1));
    metrics->clear();
    EXPECT_THAT(metrics->confusion(), ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 0));
  }
}

TEST(Confusion, IsCountedOfFewClassesWithOneLabelEach) {
  EXPECT_EQ(ranked_label(kMostConfusionLabels)->confusion().size(), 256U * 256);
  EXPECT_TRUE(ranked_label(kMostConfusionLabels + 1)->confusion().empty());
  EXPECT_TRUE(multi_label(3)->confusion().empty());
  EXPECT_TRUE(regression(1, 4)->confusion().empty());
  EXPECT_GE(class_metrics_bytes(kMostConfusionLabels), 4 * 256 * 256);
  EXPECT_LT(class_metrics_bytes(kMostConfusionLabels + 1), 4 * 256 * 256);
}

TEST(Confusion, NamesThePairsThatAreMostConfused) {
  const Confusion confusion{{"a", "b", "c"}, {9, 1, 3, 3, 9, 0, 0, 0, 9}};
  const auto pairs = confusion.most_confused(2);
  ASSERT_EQ(pairs.size(), 2U);
  EXPECT_EQ(pairs[0].label, 0U);
  EXPECT_EQ(pairs[0].predicted, 2U);
  EXPECT_EQ(pairs[0].count, 3U);
  EXPECT_EQ(pairs[1].label, 1U);
  EXPECT_EQ(pairs[1].predicted, 0U);
  EXPECT_EQ(confusion.most_confused(9).size(), 3U);
  EXPECT_TRUE(Confusion().most_confused(9).empty());
}

TEST(Confusion, IsATableOfFewClassesAndPairsOfMany) {
  const Confusion few{{"cat", "dog"}, {123456, 2, 0, 7}};
  EXPECT_EQ(few.text(),
            "confusion matrix (rows: class, columns: predicted)\n"
            "            cat     dog\n"
            "  cat    123456       2\n"
            "  dog         0       7\n");
  Confusion many;
  for (int i = 0; i < 20; ++i) many.names.push_back("class " + std::to_string(i));
  many.counts.resize(400);
  EXPECT_EQ(many.text(), "") << "nothing is confused";
  many.counts[20 * 4 + 7] = 3;
  EXPECT_THAT(many.text(), AllOf(HasSubstr("class 4 taken for class 7: 3"), Not(HasSubstr("matrix"))));
  EXPECT_EQ(Confusion().text(), "");
}

TEST(Confusion, CutsLongNamesBetweenCharacters) {
  const Confusion confusion{{"fifteen letters\xC3\xA9\xC3\xA9", "b"}, {1, 0, 0, 1}};
  EXPECT_THAT(confusion.text(), AllOf(HasSubstr("\n  fifteen letters "), Not(HasSubstr("\xC3"))));
}

}  // namespace
}  // namespace plimsoll::metrics
