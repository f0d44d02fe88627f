// The best answers of a question among the windows of its text, as transformers' utils_qa.py chooses them: of
// each window the likeliest begins with the likeliest ends.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizers/span.h"

namespace plimsoll::engine {

struct AnswerRules {
  int64_t n_best = 20;  ///< begins and ends of a window that are combined, and answers that are kept
  int64_t max_answer_tokens = 30;  ///< longer ones are none
  /// No answer is an answer too: where its score less the best one's is above this. Nothing: always one.
  std::optional<double> null_threshold = {};
};

/// A window's logits, one a token, and where its tokens of the context stand in the text.
struct WindowLogits {
  std::span<const float> begins, ends;
  size_t first = 0;  ///< the token that `begin_bytes` and `end_bytes` begin with
  std::span<const int32_t> begin_bytes, end_bytes;
};

struct ScoredAnswer {
  tokenizers::Span span = {};  ///< of the text; empty: no answer
  double logit = 0;            ///< of its begin and its end together
  double probability = 0;      ///< among those that are kept
};

class BestAnswers {
 public:
  explicit BestAnswers(const AnswerRules& rules) : rules_(rules) {}
  /// The next window of the question at hand. Of equal logits the earlier token comes first.
  void add(const WindowLogits& window);
  struct Choice {
    ScoredAnswer best = {};
    std::vector<ScoredAnswer> all = {};    ///< the kept ones, best first
    std::optional<double> null_odds = {};  ///< with null_threshold: no answer's logit less the best one's
  };
  /// Ends the question: the choice among its windows, and begins the next one.
  Choice take();

 private:
  void likeliest(std::span<const float> logits, std::vector<size_t>& places);
  const AnswerRules rules_;
  std::vector<ScoredAnswer> found_;
  std::optional<double> null_;  ///< the least of the windows' first tokens
  std::vector<size_t> begins_, ends_;
};

}  // namespace plimsoll::engine
