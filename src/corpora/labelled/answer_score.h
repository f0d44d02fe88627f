// Scores an answer against those that are right as SQuAD's evaluation does: without case, ASCII punctuation
// and articles, and with white space as one blank. Rajpurkar et al. 2016, arXiv:1606.05250, 4.4; 2018,
// arXiv:1806.03822.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "corpora/labelled/question.h"

namespace plimsoll::corpora {

struct Score {
  std::string_view name;
  double value = 0;
};

/// The words of a text that count, in order.
std::vector<std::string> counted_words(std::string_view text);

/// Means over questions, in per cent, as evaluate's squad and squad_v2.
class AnswerScores {
 public:
  /// The best of each figure over the right answers; none: "" is right, as it is where none has a word.
  void add(std::string_view answer, std::span<const Answer> right);
  /// Beside it, where no answer may be one too: the best that is not empty ("" where there is none), and how
  /// much better none is.
  void add_odds(std::string_view answer, std::span<const Answer> right, double odds);
  [[nodiscard]] int64_t size() const { return all_.count; }
  /// exact, f1; where some questions have an answer and others none, of each kind too: HasAns_exact,
  /// HasAns_f1, NoAns_exact, NoAns_f1; and where all have odds, best_exact and best_f1, which are reached if
  /// a question is left without an answer where its odds are above best_exact_thresh and best_f1_thresh.
  [[nodiscard]] std::vector<Score> values() const;

 private:
  struct Sum {
    int64_t count = 0;
    double exact = 0, f1 = 0;
    [[nodiscard]] double mean(double sum) const { return 100 * sum / static_cast<double>(count); }
  };
  /// Of the best answer that is not empty.
  struct Odds {
    double odds = 0;
    std::array<double, 2> figures = {};  ///< exact, f1
    bool has_answer = false, is_empty = false;
  };
  [[nodiscard]] std::array<double, 2> best_threshold(size_t figure) const;
  Sum all_, answered_, unanswered_;
  std::vector<Odds> odds_;
};

}  // namespace plimsoll::corpora
