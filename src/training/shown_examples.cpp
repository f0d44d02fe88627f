#include "training/shown_examples.h"

#include <algorithm>

namespace plimsoll::training {
namespace {

/// Into its place of a sorted list that keeps its first kMost.
template <typename Before>
void insert(std::vector<AnsweredExample>& list, const AnsweredExample& example, Before before) {
  const auto at = std::upper_bound(list.begin(), list.end(), example, before);
  if (at == list.end() && list.size() == ShownExamples::kMost) return;
  list.insert(at, example);
  if (list.size() > ShownExamples::kMost) list.pop_back();
}

}  // namespace

ShownExamples::ShownExamples() {
  mistakes_.reserve(kMost + 1);
  right_.reserve(kMost + 1);
}

void ShownExamples::clear() {
  mistakes_.clear();
  right_.clear();
}

void ShownExamples::add(const AnsweredExample& example) {
  const auto surer = [](const auto& a, const auto& b) { return a.answer.score > b.answer.score; };
  const auto less_sure = [](const auto& a, const auto& b) { return a.answer.score < b.answer.score; };
  if (example.answer.is_right())
    insert(right_, example, less_sure);
  else
    insert(mistakes_, example, surer);
}

std::vector<AnsweredExample> ShownExamples::chosen() const {
  const size_t room = kMost - std::min(right_.size(), kMost - kMostMistakes);
  const size_t mistakes = std::min(mistakes_.size(), room);
  std::vector<AnsweredExample> all(mistakes_.begin(), mistakes_.begin() + static_cast<ptrdiff_t>(mistakes));
  const size_t right = std::min(right_.size(), kMost - mistakes);
  all.insert(all.end(), right_.begin(), right_.begin() + static_cast<ptrdiff_t>(right));
  return all;
}

}  // namespace plimsoll::training
