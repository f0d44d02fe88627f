// Metrics against what scikit-learn and scipy say of the same examples, and their edges.
#include "metrics/metrics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace plimsoll::metrics {
namespace {

enum Kind { kSingle, kMulti, kRegression };

/// As tests/metrics/record.py has it.
class Generator {
 public:
  explicit Generator(uint32_t seed) : x_(seed) {}
  float draw(uint32_t steps) {
    x_ = x_ * 1664525U + 1013904223U;
    return static_cast<float>(static_cast<uint64_t>(x_ >> 8) * steps >> 24);
  }

 private:
  uint32_t x_;
};

struct Case {
  Kind kind;
  int64_t examples, labels, classes;
  uint32_t seed;
  std::vector<double> expected;
};

// tests/metrics/record.py with scikit-learn 1.9.1 and scipy 1.17.1.
const Case kRecorded[] = {
    {kSingle, 1, 2, 2, 1, {1, 1, 1, 0}},
    {kSingle, 2, 2, 2, 5, {0.5, 0.66666666666666663, 0.33333333333333331, 0}},
    {kSingle, 7, 3, 3, 2, {0.5714285714285714, 0.41666666666666669, 0.34718253741470678}},
    {kSingle, 40, 5, 3, 3, {0.29999999999999999, 0.2123951182303585, 0.11540218120678006}},
    {kSingle, 40, 3, 1, 4, {0.45000000000000001, 0.20689655172413793, 0}},
    {kSingle, 1000, 20, 20, 6, {0.055, 0.054052347293686964, 0.0058904193496687489}},
    {kSingle, 30, 1, 1, 7, {1, 1, 0}},
    {kSingle,
     200,
     2,
     2,
     8,
     {0.55000000000000004, 0.56730769230769229, 0.54927884615384615, 0.10967579003732131}},
    {kSingle, 50, 2, 1, 9, {0.52000000000000002, 0, 0.34210526315789475, 0}},
    {kMulti, 1, 3, 3, 1, {0, 0}},
    {kMulti, 50, 2, 2, 2, {0.23999999999999999, 0.24074074074074073}},
    {kMulti, 200, 4, 2, 3, {0.065000000000000002, 0.11079545454545454}},
    {kRegression, 2, 1, 9, 1, {1, 0.99999999999999989, 1.90625}},
    {kRegression, 60, 1, 5, 2, {-0.096885844244038372, -0.10228138562273195, 1.4958333333333333}},
    {kRegression, 60, 1, 1, 3, {NAN, NAN, 1.3479166666666667}},
    {kRegression, 500, 1, 1000, 4, {0.038232574061158368, 0.037701205893579955, 5384.6264062500004}},
    {kRegression, 20, 3, 8, 5, {1.7632812500000001}},
};

struct Examples {
  std::vector<float> outputs, labels;
};

Examples examples_of(const Case& c) {
  Generator generator(c.seed);
  Examples e;
  const int64_t count = c.examples * c.labels;
  for (int64_t i = 0; i < count; ++i) e.outputs.push_back(generator.draw(17) / 4 - 2);
  for (int64_t i = 0; i < (c.kind == kSingle ? c.examples : count); ++i) {
    const int64_t label = i % c.labels;
    if (c.kind == kSingle) e.labels.push_back(generator.draw(static_cast<uint32_t>(c.classes)));
    if (c.kind == kMulti)
      e.labels.push_back(label < c.classes ? generator.draw(2) : (generator.draw(2), 0.0F));
    if (c.kind == kRegression) e.labels.push_back(generator.draw(static_cast<uint32_t>(c.classes)) / 8);
  }
  if (c.kind == kMulti)
    for (int64_t i = 0; i < count; i += c.labels)
      e.outputs[static_cast<size_t>(i)] = -std::abs(e.outputs[static_cast<size_t>(i)]);
  return e;
}

std::unique_ptr<Metrics> metrics_of(const Case& c) {
  return c.kind == kSingle  ? single_label(c.labels)
         : c.kind == kMulti ? multi_label(c.labels)
                            : regression(c.labels, c.examples);
}

void add_all(const Case& c, const Examples& e, Metrics& metrics) {
  const auto width = static_cast<size_t>(c.labels), labels = c.kind == kSingle ? 1 : width;
  for (size_t i = 0; i < static_cast<size_t>(c.examples); ++i)
    metrics.add(std::span(e.outputs).subspan(i * width, width),
                std::span(e.labels).subspan(i * labels, labels));
}

TEST(Metrics, AreScikitLearnsAndScipys) {
  for (const Case& c : kRecorded) {
    const auto metrics = metrics_of(c);
    const Examples e = examples_of(c);
    for (const char* round : {"first", "after clear"}) {
      metrics->clear();
      add_all(c, e, *metrics);
      const std::vector<Value> values = metrics->values();
      ASSERT_EQ(values.size(), c.expected.size());
      for (size_t i = 0; i < values.size(); ++i) {
        EXPECT_EQ(std::isnan(values[i].value), std::isnan(c.expected[i])) << values[i].name;
        if (!std::isnan(c.expected[i])) {
          EXPECT_NEAR(values[i].value, c.expected[i], 1e-12 * (1 + std::abs(c.expected[i])))
              << values[i].name << " of seed " << c.seed << ", " << round;
        }
      }
    }
  }
}

std::vector<std::string_view> names(Metrics& metrics) {
  std::vector<std::string_view> all;
  for (const Value& v : metrics.values()) all.push_back(v.name);
  return all;
}

TEST(Metrics, AreNamed) {
  EXPECT_EQ(names(*single_label(3)), (std::vector<std::string_view>{"accuracy", "f1_macro", "matthews"}));
  EXPECT_EQ(names(*single_label(2)),
            (std::vector<std::string_view>{"accuracy", "f1", "f1_macro", "matthews"}));
  EXPECT_EQ(names(*ranked_label(2)),
            (std::vector<std::string_view>{"accuracy", "top5_accuracy", "f1_macro"}));
  EXPECT_EQ(names(*multi_label(3)), (std::vector<std::string_view>{"accuracy", "f1_macro"}));
  EXPECT_EQ(names(*regression(1, 4)), (std::vector<std::string_view>{"pearson", "spearman", "mse"}));
  EXPECT_EQ(names(*regression(2, 4)), (std::vector<std::string_view>{"mse"}));
  EXPECT_EQ(names(*token_spans(4)), (std::vector<std::string_view>{"span_accuracy"}));
}

TEST(Metrics, AreUndefinedWithoutExamples) {
  for (const auto& metrics : {single_label(2), multi_label(2), regression(1, 1), token_spans(3)})
    for (const Value& v : metrics->values()) EXPECT_TRUE(std::isnan(v.value)) << v.name;
}

TEST(Metrics, OfWhatIsNotANumber) {
  const std::vector<float> nan = {1, std::nanf("")}, fine = {0, 1};
  const auto single = single_label(2);
  single->add(nan, std::vector<float>{1});
  EXPECT_EQ(single->values()[0].value, 1);  // numpy.argmax takes it for the largest
  const auto numbers = regression(1, 2);
  for (size_t i = 0; i < 2; ++i) numbers->add(std::span(nan).subspan(i, 1), std::span(fine).subspan(i, 1));
  for (const Value& v : numbers->values()) EXPECT_TRUE(std::isnan(v.value)) << v.name;
}

TEST(RankedLabel, CountsTheFirstFive) {
  const auto metrics = ranked_label(7);
  const auto add = [&](std::vector<float> outputs, float label) { metrics->add(outputs, {&label, 1}); };
  add({7, 6, 5, 4, 3, 2, 1}, 0);
  add({7, 6, 5, 4, 3, 2, 1}, 4);
  add({7, 6, 5, 4, 3, 2, 1}, 5);
  add({1, 1, 1, 1, 1, 1, 1}, 2);  // of equal outputs the later come first
  add({1, 1, 1, 1, 1, 1, 1}, 1);
  add({NAN, 9, 8, 7, 6, 5, 4}, 5);
  add({NAN, 9, 8, 7, 6, 5, 4}, 0);
  const std::vector<Value> values = metrics->values();
  ASSERT_EQ(values.size(), 3U);
  EXPECT_EQ(values[0].name, "accuracy");
  EXPECT_DOUBLE_EQ(values[0].value, 2.0 / 7);
  EXPECT_EQ(values[1].name, "top5_accuracy");
  EXPECT_DOUBLE_EQ(values[1].value, 4.0 / 7);
  EXPECT_EQ(values[2].name, "f1_macro");
  metrics->clear();
  add({0, 1, 2, 3, 4, 5, 6}, 6);
  EXPECT_DOUBLE_EQ(metrics->values()[1].value, 1);
}

TEST(RankedLabel, UpToFiveClassesAreAlwaysAmongTheFirstFive) {
  const auto metrics = ranked_label(4);
  const std::vector<float> outputs = {3, 2, 1, 0};
  const float label = 3;
  metrics->add(outputs, {&label, 1});
  EXPECT_DOUBLE_EQ(metrics->values()[0].value, 0);
  EXPECT_DOUBLE_EQ(metrics->values()[1].value, 1);
}

}  // namespace
}  // namespace plimsoll::metrics
