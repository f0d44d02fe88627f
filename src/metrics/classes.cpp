// Metrics of classes: counts of each class in truth, in prediction and in both are all they need.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "metrics/metrics.h"

namespace plimsoll::metrics {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct ClassCounts {
  int64_t truth = 0, predicted = 0, both = 0;
};

/// 2 TP / (2 TP + FP + FN): 0 where the class never occurs, as scikit-learn's zero_division has it.
double f1(const ClassCounts& c) {
  const int64_t total = c.truth + c.predicted;
  return total == 0 ? 0.0 : 2.0 * static_cast<double>(c.both) / static_cast<double>(total);
}

double share(int64_t part, int64_t whole) {
  return whole == 0 ? kNaN : static_cast<double>(part) / static_cast<double>(whole);
}

/// Elements of the confusion matrix of so many classes.
int64_t confusion_size(int64_t num_labels) {
  return num_labels <= kMostConfusionLabels ? num_labels * num_labels : 0;
}

class SingleLabel final : public Metrics {
 public:
  /// `ranks`: the share among the first five in place of Matthews' correlation.
  SingleLabel(int64_t num_labels, bool ranks)
      : counts_(static_cast<size_t>(num_labels)),
        confusion_(static_cast<size_t>(confusion_size(num_labels))),
        ranks_(ranks) {}
  void clear() override {
    std::fill(counts_.begin(), counts_.end(), ClassCounts());
    std::fill(confusion_.begin(), confusion_.end(), 0U);
    examples_ = right_ = among_first_ = 0;
  }

  void add(std::span<const float> outputs, std::span<const float> labels) override {
    PLIMSOLL_CHECK(outputs.size() == counts_.size() && labels.size() == 1);
    const size_t truth = static_cast<size_t>(labels[0]), predicted = largest(outputs);
    PLIMSOLL_CHECK(truth < counts_.size(), "a label beyond the classes");
    ++examples_;
    ++counts_[truth].truth;
    ++counts_[predicted].predicted;
    if (!confusion_.empty()) ++confusion_[truth * counts_.size() + predicted];
    among_first_ += ranks_ && rank(outputs, truth) < kFirst ? 1 : 0;
    if (truth != predicted) return;
    ++counts_[truth].both;
    ++right_;
  }

  std::vector<Value> values() override {
    const Value accuracy{"accuracy", share(right_, examples_)}, f1{"f1_macro", f1_macro()};
    if (ranks_) return {accuracy, {"top5_accuracy", share(among_first_, examples_)}, f1};
    const Value correlation{"matthews", matthews()};
    if (counts_.size() == 2) return {accuracy, {"f1", f1_of_second()}, f1, correlation};
    return {accuracy, f1, correlation};
  }
  [[nodiscard]] std::span<const uint32_t> confusion() const override { return confusion_; }

 private:
  static constexpr int64_t kFirst = 5;
  /// Classes that come before this one, by outputs; what is no number comes first.
  static int64_t rank(std::span<const float> outputs, size_t label) {
    const auto above = [&](size_t i) {
      const bool is_nan = std::isnan(outputs[i]), label_is_nan = std::isnan(outputs[label]);
      if (is_nan != label_is_nan) return is_nan;
      return outputs[i] > outputs[label] || (!(outputs[i] < outputs[label]) && i > label);
    };
    int64_t before = 0;
    for (size_t i = 0; i < outputs.size(); ++i) before += i != label && above(i) ? 1 : 0;
    return before;
  }

  [[nodiscard]] double f1_macro() const {
    double sum = 0;
    int64_t occurring = 0;
    for (const ClassCounts& c : counts_) {
      if (c.truth + c.predicted == 0) continue;
      sum += f1(c);
      ++occurring;
    }
    return occurring == 0 ? kNaN : sum / static_cast<double>(occurring);
  }

  [[nodiscard]] double f1_of_second() const { return examples_ == 0 ? kNaN : f1(counts_[1]); }

  /// Gorodkin 2004's generalisation to several classes, as scikit-learn computes it.
  [[nodiscard]] double matthews() const {
    if (examples_ == 0) return kNaN;
    double both = 0, truth = 0, predicted = 0;
    for (const ClassCounts& c : counts_) {
      const auto t = static_cast<double>(c.truth), p = static_cast<double>(c.predicted);
      both += t * p;
      truth += t * t;
      predicted += p * p;
    }
    const auto n = static_cast<double>(examples_);
    const double spread = (n * n - predicted) * (n * n - truth);
    return spread == 0 ? 0.0 : (static_cast<double>(right_) * n - both) / std::sqrt(spread);
  }

  std::vector<ClassCounts> counts_;
  std::vector<uint32_t> confusion_;  ///< [class, predicted class]
  bool ranks_;
  int64_t examples_ = 0, right_ = 0, among_first_ = 0;
};

class MultiLabel final : public Metrics {
 public:
  explicit MultiLabel(int64_t num_labels) : counts_(static_cast<size_t>(num_labels)) {}
  void clear() override {
    std::fill(counts_.begin(), counts_.end(), ClassCounts());
    examples_ = right_ = 0;
  }

  void add(std::span<const float> outputs, std::span<const float> labels) override {
    PLIMSOLL_CHECK(outputs.size() == counts_.size() && labels.size() == counts_.size());
    bool all = true;
    for (size_t i = 0; i < counts_.size(); ++i) {
      const bool truth = labels[i] > 0.5F, predicted = outputs[i] > 0.0F;
      counts_[i].truth += truth ? 1 : 0;
      counts_[i].predicted += predicted ? 1 : 0;
      counts_[i].both += truth && predicted ? 1 : 0;
      all = all && truth == predicted;
    }
    ++examples_;
    right_ += all ? 1 : 0;
  }

  std::vector<Value> values() override {
    double sum = 0;
    for (const ClassCounts& c : counts_) sum += f1(c);
    const double mean = examples_ == 0 ? kNaN : sum / static_cast<double>(counts_.size());
    return {{"accuracy", share(right_, examples_)}, {"f1_macro", mean}};
  }

 private:
  std::vector<ClassCounts> counts_;
  int64_t examples_ = 0, right_ = 0;
};

}  // namespace

size_t largest(std::span<const float> outputs) {
  size_t best = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (std::isnan(outputs[i])) return i;
    if (outputs[i] > outputs[best]) best = i;
  }
  return best;
}

std::unique_ptr<Metrics> single_label(int64_t num_labels) {
  return std::make_unique<SingleLabel>(num_labels, /*ranks=*/false);
}
std::unique_ptr<Metrics> ranked_label(int64_t num_labels) {
  return std::make_unique<SingleLabel>(num_labels, /*ranks=*/true);
}
std::unique_ptr<Metrics> multi_label(int64_t num_labels) { return std::make_unique<MultiLabel>(num_labels); }

int64_t class_metrics_bytes(int64_t num_labels) {
  return static_cast<int64_t>(sizeof(SingleLabel)) + num_labels * static_cast<int64_t>(sizeof(ClassCounts)) +
         confusion_size(num_labels) * static_cast<int64_t>(sizeof(uint32_t));
}
int64_t multi_label_bytes(int64_t num_labels) {
  return static_cast<int64_t>(sizeof(MultiLabel)) + num_labels * static_cast<int64_t>(sizeof(ClassCounts));
}

}  // namespace plimsoll::metrics
