// Stretches of tokens: both ends are right, or the window is wrong.
#include <gtest/gtest.h>

#include <cmath>

#include "metrics/metrics.h"

namespace plimsoll::metrics {
namespace {

/// Where nothing can begin or end.
constexpr float kFarBelow = -1e30F;

struct Spans {
  std::unique_ptr<Metrics> metrics = token_spans(3);
  double operator()(std::vector<float> outputs, float first, float last) {
    metrics->clear();
    add(std::move(outputs), first, last);
    return metrics->values()[0].value;
  }
  void add(std::vector<float> outputs, float first, float last) {
    metrics->add(outputs, std::vector<float>{first, last});
  }
};

TEST(TokenSpans, BothEndsAreRightOrItIsWrong) {
  Spans spans;
  EXPECT_EQ(spans({0, 2, 1, 5, 6, 9}, 1, 2), 1);
  EXPECT_EQ(spans({0, 2, 1, 5, 6, 9}, 1, 1), 0);
  EXPECT_EQ(spans({0, 2, 1, 5, 6, 9}, 0, 2), 0);
  EXPECT_EQ(spans({0, 2, 1, 5, 6, 9}, 2, 1), 0) << "begins and ends are told apart";
}

TEST(TokenSpans, OfEqualLogitsTheFirstIsTaken) {
  Spans spans;
  EXPECT_EQ(spans({1, 1, 1, 0, 1, 1}, 0, 1), 1);
  EXPECT_EQ(spans({1, 1, 1, 0, 1, 1}, 0, 2), 0);
}

TEST(TokenSpans, PaddingIsNoAnswer) {
  Spans spans;
  EXPECT_EQ(spans({-7, kFarBelow, kFarBelow, -9, kFarBelow, kFarBelow}, 0, 0), 1);
  EXPECT_EQ(spans({-9, -7, kFarBelow, -7, -9, kFarBelow}, 1, 0), 1);
}

TEST(TokenSpans, AreASharePerWindow) {
  Spans spans;
  EXPECT_TRUE(std::isnan(spans.metrics->values()[0].value)) << "of no window";
  for (int i = 0; i < 3; ++i) spans.add({9, 0, 0, 0, 9, 0}, 0, 1);
  spans.add({9, 0, 0, 0, 9, 0}, 0, 2);
  EXPECT_DOUBLE_EQ(spans.metrics->values()[0].value, 0.75);
  EXPECT_EQ(spans.metrics->values()[0].name, "span_accuracy");
  EXPECT_TRUE(spans.metrics->confusion().empty());
  spans.metrics->clear();
  EXPECT_TRUE(std::isnan(spans.metrics->values()[0].value));
}

TEST(TokenSpans, ALogitThatIsNotANumberIsTaken) {
  Spans spans;
  EXPECT_EQ(spans({9, NAN, 0, 9, NAN, 0}, 1, 1), 1) << "as numpy.argmax";
  EXPECT_EQ(spans({9, NAN, 0, 9, NAN, 0}, 0, 0), 0);
}

}  // namespace
}  // namespace plimsoll::metrics
