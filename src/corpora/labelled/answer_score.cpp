#include "corpora/labelled/answer_score.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "corpora/labelled/python_space.h"
#include "tokenizers/unicode.h"
#include "tokenizers/unicode_forms.h"

namespace plimsoll::corpora {
namespace {

using tokenizers::CodePoint;

uint8_t kind_of(uint32_t c) { return tokenizers::properties()[c] & tokenizers::kClassBits; }
bool has_case(uint32_t c) { return kind_of(c) == tokenizers::kUpper || kind_of(c) == tokenizers::kLower; }

/// What stands in a word without ending it (Case_Ignorable): marks, points and apostrophes.
bool is_ignored(uint32_t c) {
  constexpr std::u32string_view kInWords =
      U"'.:^`\u00A8\u00AD\u00AF\u00B4\u00B7\u00B8\u0387\u2018\u2019\u2024\u2027";
  return kind_of(c) == tokenizers::kMark || kInWords.find(static_cast<char32_t>(c)) != kInWords.npos;
}

/// Whether the next letter, marks left out, has two cases.
bool begins_with_case(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = tokenizers::decode(text.data() + at);
    if (!is_ignored(c.value)) return has_case(c.value);
    at += static_cast<size_t>(c.length);
  }
  return false;
}

/// As Python's str.lower(): at the end of a word the letter sigma has a form of its own.
std::string lowered(std::string_view text) {
  constexpr uint32_t kSigma = 0x3A3, kFinalSigma = 0x3C2;
  std::string out;
  bool behind_case = false;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = tokenizers::decode(text.data() + at);
    at += static_cast<size_t>(c.length);
    if (c.value == kSigma && behind_case && !begins_with_case(text.substr(at)))
      tokenizers::append_utf8(kFinalSigma, out);
    else
      tokenizers::append_lowercase(c.value, out);
    if (!is_ignored(c.value)) behind_case = has_case(c.value);
  }
  return out;
}

bool is_punctuation(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

/// \w of Python's re, which takes no marks and no other punctuation than this.
bool is_of_word(CodePoint c) {
  const uint8_t kind = kind_of(c.value);
  return c.value == '_' || kind == tokenizers::kLetter || kind == tokenizers::kNumber || has_case(c.value);
}

/// Replaces the articles, each between the ends of a word, by blanks.
std::string without_articles(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size()) {
      const CodePoint c = tokenizers::decode(text.data() + end);
      if (!is_of_word(c)) break;
      end += static_cast<size_t>(c.length);
    }
    if (end == at) {
      end += static_cast<size_t>(tokenizers::decode(text.data() + at).length);
      out += text.substr(at, end - at);
    } else {
      const std::string_view word = text.substr(at, end - at);
      out += word == "a" || word == "an" || word == "the" ? std::string_view(" ") : word;
    }
    at = end;
  }
  return out;
}

double f1(const std::vector<std::string>& found, const std::vector<std::string>& right) {
  if (found.empty() || right.empty()) return found.empty() && right.empty() ? 1 : 0;
  std::map<std::string_view, int64_t> counts;
  for (const std::string& word : right) ++counts[word];
  int64_t same = 0;
  for (const std::string& word : found)
    if (auto at = counts.find(word); at != counts.end() && at->second-- > 0) ++same;
  if (same == 0) return 0;
  const double precision = static_cast<double>(same) / static_cast<double>(found.size()),
               recall = static_cast<double>(same) / static_cast<double>(right.size());
  return 2 * precision * recall / (precision + recall);
}

/// exact and f1, each the best over the right answers.
std::array<double, 2> figures_of(std::string_view answer, std::span<const Answer> right) {
  const std::vector<std::string> found = counted_words(answer);
  std::array<double, 2> best = {};
  bool any = false;
  const auto compare = [&](const std::vector<std::string>& words) {
    best = {std::max(best[0], found == words ? 1.0 : 0.0), std::max(best[1], f1(found, words))};
  };
  for (const Answer& each : right)
    if (const auto words = counted_words(each.text); !words.empty()) any = true, compare(words);
  if (!any) compare({});
  return best;
}

}  // namespace

std::vector<std::string> counted_words(std::string_view text) {
  std::string repaired;
  tokenizers::append_repaired(text, repaired);
  std::string kept = lowered(repaired);
  std::erase_if(kept, is_punctuation);
  kept = without_articles(kept);
  std::vector<std::string> words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
  };
  for (size_t at = 0; at < kept.size();) {
    const CodePoint c = tokenizers::decode(kept.data() + at);
    if (is_python_space(c))
      end_word();
    else
      word += kept.substr(at, static_cast<size_t>(c.length));
    at += static_cast<size_t>(c.length);
  }
  end_word();
  return words;
}

void AnswerScores::add(std::string_view answer, std::span<const Answer> right) {
  const auto [exact, f1] = figures_of(answer, right);
  for (Sum* sum : {&all_, right.empty() ? &unanswered_ : &answered_}) {
    ++sum->count;
    sum->exact += exact;
    sum->f1 += f1;
  }
}

void AnswerScores::add_odds(std::string_view answer, std::span<const Answer> right, double odds) {
  odds_.push_back({odds, figures_of(answer, right), !right.empty(), answer.empty()});
}

/// SQuAD's search: with more and more questions answered, those with the least odds first, an answer adds its
/// figure where the question has one, and takes what none would have had where it has not. {figure in per
/// cent, threshold}, 0 where none should be answered.
std::array<double, 2> AnswerScores::best_threshold(size_t figure) const {
  std::vector<size_t> order(odds_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return odds_[i].odds; });
  double now = static_cast<double>(std::ranges::count(odds_, false, &Odds::has_answer)), best = now,
         threshold = 0;
  for (const size_t i : order) {
    const Odds& each = odds_[i];
    now += each.has_answer ? each.figures[figure] : each.is_empty ? 0 : -1;
    if (now > best) best = now, threshold = each.odds;
  }
  return {100 * best / static_cast<double>(odds_.size()), threshold};
}

std::vector<Score> AnswerScores::values() const {
  if (all_.count == 0) return {};
  std::vector<Score> found = {{"exact", all_.mean(all_.exact)}, {"f1", all_.mean(all_.f1)}};
  if (answered_.count == 0 || unanswered_.count == 0) return found;
  found.push_back({"HasAns_exact", answered_.mean(answered_.exact)});
  found.push_back({"HasAns_f1", answered_.mean(answered_.f1)});
  found.push_back({"NoAns_exact", unanswered_.mean(unanswered_.exact)});
  found.push_back({"NoAns_f1", unanswered_.mean(unanswered_.f1)});
  if (std::ssize(odds_) != all_.count) return found;
  const auto [exact, exact_threshold] = best_threshold(0);
  const auto [f1, f1_threshold] = best_threshold(1);
  found.insert(found.end(), {{"best_exact", exact},
                             {"best_exact_thresh", exact_threshold},
                             {"best_f1", f1},
                             {"best_f1_thresh", f1_threshold}});
  return found;
}

}  // namespace plimsoll::corpora
