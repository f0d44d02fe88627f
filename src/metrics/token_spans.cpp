// Metrics of stretches of tokens.
#include <cmath>

#include "base/check.h"
#include "metrics/metrics.h"

namespace plimsoll::metrics {
namespace {

class TokenSpans final : public Metrics {
 public:
  explicit TokenSpans(int64_t tokens) : tokens_(static_cast<size_t>(tokens)) {}
  void clear() override { examples_ = right_ = 0; }
  void add(std::span<const float> outputs, std::span<const float> labels) override {
    PLIMSOLL_CHECK(outputs.size() == 2 * tokens_ && labels.size() == 2);
    const auto is_right = [&](size_t side) {
      return static_cast<float>(largest(outputs.subspan(side * tokens_, tokens_))) == labels[side];
    };
    ++examples_;
    if (is_right(0) && is_right(1)) ++right_;
  }
  std::vector<Value> values() override {
    const double share = examples_ == 0 ? NAN : static_cast<double>(right_) / static_cast<double>(examples_);
    return {{"span_accuracy", share}};
  }

 private:
  size_t tokens_;
  int64_t examples_ = 0, right_ = 0;
};

}  // namespace

std::unique_ptr<Metrics> token_spans(int64_t tokens) { return std::make_unique<TokenSpans>(tokens); }

}  // namespace plimsoll::metrics
