// Metrics of numbers: correlations over what is held, the squared error as it comes.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "metrics/metrics.h"

namespace plimsoll::metrics {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

double mean(std::span<const double> x) {
  return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
}

/// Pearson's r; NaN with less than two examples, with a constant side, or with what is not a number.
double correlation(std::span<const double> x, std::span<const double> y) {
  const auto constant = [](std::span<const double> v) {
    return std::all_of(v.begin(), v.end(), [&](double e) { return e == v[0]; });
  };
  if (x.size() < 2 || constant(x) || constant(y)) return kUndefined;
  const double mean_x = mean(x), mean_y = mean(y);
  double xx = 0, yy = 0, xy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double dx = x[i] - mean_x, dy = y[i] - mean_y;
    xx += dx * dx;
    yy += dy * dy;
    xy += dx * dy;
  }
  const double r = xy / (std::sqrt(xx) * std::sqrt(yy));
  return std::isnan(r) ? kUndefined : std::clamp(r, -1.0, 1.0);
}

class Regression final : public Metrics {
 public:
  Regression(int64_t num_outputs, int64_t max_examples) : outputs_(static_cast<size_t>(num_outputs)) {
    if (outputs_ != 1) return;
    for (Side* side : {&predicted_, &truth_}) {
      side->values.resize(static_cast<size_t>(max_examples));
      side->ranks.resize(static_cast<size_t>(max_examples));
    }
    order_.resize(static_cast<size_t>(max_examples));
  }
  void clear() override {
    examples_ = 0;
    squares_ = 0;
  }

  void add(std::span<const float> outputs, std::span<const float> labels) override {
    PLIMSOLL_CHECK(outputs.size() == outputs_ && labels.size() == outputs_);
    for (size_t i = 0; i < outputs_; ++i) {
      const double difference = static_cast<double>(outputs[i]) - static_cast<double>(labels[i]);
      squares_ += difference * difference;
    }
    if (outputs_ == 1) {
      PLIMSOLL_CHECK(examples_ < order_.size(), "more examples than there is room for");
      predicted_.values[examples_] = static_cast<double>(outputs[0]);
      truth_.values[examples_] = static_cast<double>(labels[0]);
    }
    ++examples_;
  }

  std::vector<Value> values() override {
    const double mse = examples_ == 0 ? kUndefined : squares_ / static_cast<double>(examples_ * outputs_);
    if (outputs_ != 1) return {{"mse", mse}};
    return {{"pearson", correlation(held(predicted_.values), held(truth_.values))},
            {"spearman", spearman()},
            {"mse", mse}};
  }

 private:
  struct Side {
    std::vector<double> values, ranks;
  };
  [[nodiscard]] std::span<const double> held(const std::vector<double>& v) const {
    return std::span(v).first(examples_);
  }

  double spearman() {
    if (!rank(predicted_) || !rank(truth_)) return kUndefined;
    return correlation(held(predicted_.ranks), held(truth_.ranks));
  }

  /// Ranks from 1; equal values share the mean of theirs. False where one is not a number.
  bool rank(Side& side) {
    const std::span<const double> values = held(side.values);
    if (std::any_of(values.begin(), values.end(), [](double v) { return std::isnan(v); })) return false;
    const std::span order = std::span(order_).first(examples_);
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
    for (size_t begin = 0; begin < order.size();) {
      size_t end = begin + 1;
      while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
      // The mean of begin + 1 … end.
      const double shared = static_cast<double>(begin + 1 + end) / 2;
      for (; begin < end; ++begin) side.ranks[order[begin]] = shared;
    }
    return true;
  }

  size_t outputs_;
  size_t examples_ = 0;
  double squares_ = 0;
  Side predicted_, truth_;
  std::vector<size_t> order_;
};

}  // namespace

std::unique_ptr<Metrics> regression(int64_t num_outputs, int64_t max_examples) {
  return std::make_unique<Regression>(num_outputs, max_examples);
}

int64_t regression_bytes(int64_t num_outputs, int64_t max_examples) {
  constexpr int64_t kPerExample = 4 * sizeof(double) + sizeof(size_t);
  return static_cast<int64_t>(sizeof(Regression)) + (num_outputs == 1 ? max_examples * kPerExample : 0);
}

}  // namespace plimsoll::metrics
