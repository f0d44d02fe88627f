#include "engine/best_answers.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace plimsoll::engine {

void BestAnswers::likeliest(std::span<const float> logits, std::vector<size_t>& places) {
  places.resize(logits.size());
  std::iota(places.begin(), places.end(), size_t{0});
  const auto kept = std::min(places.size(), static_cast<size_t>(rules_.n_best));
  const auto before = [&](size_t a, size_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  std::partial_sort(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(kept), places.end(), before);
  places.resize(kept);
}

void BestAnswers::add(const WindowLogits& window) {
  const double null = static_cast<double>(window.begins[0]) + static_cast<double>(window.ends[0]);
  null_ = null_ ? std::min(*null_, null) : null;
  likeliest(window.begins, begins_);
  likeliest(window.ends, ends_);
  const size_t last = window.first + window.begin_bytes.size();
  for (const size_t begin : begins_)
    for (const size_t end : ends_) {
      const bool in_context = begin >= window.first && end < last;
      if (!in_context || end < begin || end - begin + 1 > static_cast<size_t>(rules_.max_answer_tokens))
        continue;
      found_.push_back({{static_cast<size_t>(window.begin_bytes[begin - window.first]),
                         static_cast<size_t>(window.end_bytes[end - window.first])},
                        static_cast<double>(window.begins[begin]) + static_cast<double>(window.ends[end]),
                        0});
    }
}

BestAnswers::Choice BestAnswers::take() {
  Choice choice;
  choice.all = std::exchange(found_, {});
  const double null = std::exchange(null_, std::nullopt).value_or(0);
  const auto better = [](const ScoredAnswer& a, const ScoredAnswer& b) { return a.logit > b.logit; };
  // A token of spaces alone is no answer either; no answer stands at the text's begin.
  const auto is_answer = [](const ScoredAnswer& a) { return a.span.end > a.span.begin; };
  const auto is_null = [](const ScoredAnswer& a) { return a.span.end == 0; };
  if (rules_.null_threshold) choice.all.push_back({{}, null, 0});
  std::ranges::stable_sort(choice.all, better);
  if (choice.all.size() > static_cast<size_t>(rules_.n_best)) {
    choice.all.resize(static_cast<size_t>(rules_.n_best));
    if (rules_.null_threshold && std::ranges::none_of(choice.all, is_null))
      choice.all.push_back({{}, null, 0});
  }
  if (choice.all.empty()) choice.all.push_back({});
  double sum = 0;
  for (ScoredAnswer& each : choice.all) sum += each.probability = std::exp(each.logit - choice.all[0].logit);
  for (ScoredAnswer& each : choice.all) each.probability /= sum;
  const auto first = std::ranges::find_if(choice.all, is_answer);
  const auto null_at = std::ranges::find_if(choice.all, is_null);
  choice.best = first != choice.all.end() ? *first : choice.all[0];
  if (!rules_.null_threshold || first == choice.all.end()) return choice;
  choice.null_odds = null - first->logit;
  if (*choice.null_odds > *rules_.null_threshold && null_at != choice.all.end()) choice.best = *null_at;
  return choice;
}

}  // namespace plimsoll::engine
