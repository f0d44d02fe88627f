#include "engine/predict_line.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace plimsoll::engine {
namespace {

io::Tree finite(double value) { return std::isfinite(value) ? io::Tree::of(value) : io::Tree{}; }

io::Tree list_of(std::span<const float> values) {
  std::vector<io::Tree> items;
  for (const float v : values) items.push_back(finite(static_cast<double>(v)));
  return io::Tree::list(std::move(items));
}

double sigmoid(float logit) { return 1.0 / (1.0 + std::exp(-static_cast<double>(logit))); }

/// The softmax of the largest.
double probability(std::span<const float> logits, float largest) {
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - static_cast<double>(largest));
  return 1.0 / sum;
}

void add_likeliest(const io::Labels& labels, std::span<const float> logits, io::Tree& line) {
  const auto best = std::max_element(logits.begin(), logits.end());
  line.set("label", io::Tree::of(labels.names[static_cast<size_t>(best - logits.begin())]));
  line.set("score", finite(probability(logits, *best)));
}

void add_likely(const io::Labels& labels, std::span<const float> logits, io::Tree& line) {
  std::vector<io::Tree> names, scores;
  for (size_t i = 0; i < logits.size(); ++i) {
    scores.push_back(finite(sigmoid(logits[i])));
    if (logits[i] > 0) names.push_back(io::Tree::of(labels.names[i]));
  }
  line.set("label", io::Tree::list(std::move(names)));
  line.set("score", io::Tree::list(std::move(scores)));
}

}  // namespace

io::Tree prediction(const io::Labels& labels, std::span<const float> logits) {
  io::Tree line = io::Tree::map();
  switch (labels.problem) {
    case io::ProblemType::kSingleLabel:
      add_likeliest(labels, logits, line);
      break;
    case io::ProblemType::kMultiLabel:
      add_likely(labels, logits, line);
      break;
    case io::ProblemType::kRegression:
      line.set("label", io::Tree{});
      line.set("score", logits.size() == 1 ? finite(static_cast<double>(logits[0])) : list_of(logits));
      break;
  }
  line.set("logits", list_of(logits));
  return line;
}

}  // namespace plimsoll::engine
