// Optimal string alignment: insert, delete, substitute, swap neighbours. Names are short; longer ones are
// cut.
#include "io/suggest.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace plimsoll::io {
namespace {

constexpr size_t kLongest = 96;  ///< a hostile key must not cost its square
constexpr size_t kShortest = 3;  ///< fewer letters lie in too many names

/// "epochs" of "num_epochs", "llama-2" of "llama-2-7b": a third of it or more, between its separators.
bool is_words_of(std::string_view name, std::string_view candidate) {
  if (name.size() < kShortest || 3 * name.size() < candidate.size()) return false;
  const auto separates = [](char c) { return c == '_' || c == '-' || c == '.'; };
  for (size_t at = candidate.find(name); at != std::string_view::npos; at = candidate.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || separates(candidate[at - 1])) && (end == candidate.size() || separates(candidate[end])))
      return true;
  }
  return false;
}

/// "bfloat16" of "bf16": the candidate's letters in their order, from its first to its last.
bool is_spelt_out(std::string_view name, std::string_view candidate) {
  if (candidate.size() < kShortest || 2 * candidate.size() < name.size()) return false;
  if (name.empty() || name.front() != candidate.front() || name.back() != candidate.back()) return false;
  size_t found = 0;
  for (const char c : name)
    if (found < candidate.size() && c == candidate[found]) ++found;
  return found == candidate.size();
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b, int at_most) {
  a = a.substr(0, kLongest);
  b = b.substr(0, kLongest);
  if (static_cast<int>(std::max(a.size(), b.size()) - std::min(a.size(), b.size())) >= at_most)
    return at_most;
  const size_t width = b.size() + 1;
  std::vector<int> cost((a.size() + 1) * width);
  const auto at = [&](size_t i, size_t j) -> int& { return cost[i * width + j]; };
  for (size_t i = 0; i <= a.size(); ++i) at(i, 0) = static_cast<int>(i);
  for (size_t j = 0; j <= b.size(); ++j) at(0, j) = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int least = at(i, 0);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int substitute = at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1);
      int best = std::min({substitute, at(i - 1, j) + 1, at(i, j - 1) + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        best = std::min(best, at(i - 2, j - 2) + 1);
      at(i, j) = best;
      least = std::min(least, best);
    }
    if (least >= at_most) return at_most;  // rows never get smaller
  }
  return std::min(cost.back(), at_most);
}

bool is_near(std::string_view name, std::string_view candidate) {
  const int letters = static_cast<int>(std::min(name.size(), kLongest));
  const int wrong = letters < static_cast<int>(kShortest) ? 0 : letters / 3;
  return edit_distance(name, candidate, wrong + 1) <= wrong || is_words_of(name, candidate) ||
         is_spelt_out(name, candidate);
}

std::string nearest_name(std::string_view name, std::span<const std::string> candidates) {
  int least = std::numeric_limits<int>::max();
  std::string nearest;
  for (const std::string& candidate : candidates) {
    if (!is_near(name, candidate)) continue;
    if (const int distance = edit_distance(name, candidate, least); distance < least) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> candidates) {
  const std::string nearest = nearest_name(name, candidates);
  return nearest.empty() ? "" : "did you mean " + nearest + "?";
}

std::string nearest_hint(std::string_view name, std::span<const std::string> candidates) {
  if (const std::string nearest = nearest_name(name, candidates); !nearest.empty())
    return "the nearest is " + nearest;
  constexpr size_t kMost = 24;  // a line or two
  std::string all;
  for (const std::string& candidate : candidates.first(std::min(candidates.size(), kMost)))
    all += (all.empty() ? "one of " : ", ") + candidate;
  return candidates.size() > kMost ? all + ", …" : all;
}

}  // namespace plimsoll::io
