// Questions about texts, as SQuAD has them, and the windows of tokens that they become.
//
//   {"id"?: …, "question": …, "context": …, "answers"?: ANSWERS}     a line
//   ANSWERS: {"text": […], "answer_start": […]}                      as `datasets` has them
//            [{"text": …, "answer_start": …}, …]                     as SQuAD has them
//   {"data": [{"paragraphs": [{"context": …, "qas": [QUESTION, …]}]}]}   SQuAD's own file
//
// A question and as much of its context as fits are a window; a longer context becomes several, which
// overlap.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "corpora/example.h"
#include "tokenizers/tokenizer.h"

namespace plimsoll::corpora {

struct Answer {
  std::string text = {};
  size_t begin = 0;  ///< a byte of the context
};

struct Question {
  std::string id = {};  ///< empty: the line has none
  std::string question = {}, context = {};
  std::vector<Answer> answers = {};  ///< empty: the context has none
  bool has_answers = false;          ///< the line says which there are, or that there are none
};

/// The member of SQuAD's file that holds its articles, for ReaderOptions::list_member: each is a record.
inline constexpr const char* kArticles = "data";

/// The questions of a record that stands at that place: a line, an article of SQuAD's file, or that file.
/// `with_answers`: each must say which there are. Returns what is wrong, if anything; an answer must stand
/// where its answer_start, which counts characters, says. With `passed_over` a question with something wrong
/// is put there and left out, and only what is wrong with the record is returned.
std::optional<BadExample> parse_questions(std::string_view json, const std::string& place, bool with_answers,
                                          std::vector<Question>& questions,
                                          std::vector<BadExample>* passed_over = nullptr);

struct WindowOptions {
  const tokenizers::Tokenizer* tokenizer = nullptr;
  int64_t max_tokens = 384;  ///< of a window, special tokens included
  int64_t doc_stride = 128;  ///< tokens that neighbouring windows share
  bool has_types = false;
};

/// A window. Tokens of the context are those from `first` on, `spans.size()` of them.
struct Window {
  std::vector<int32_t> ids = {};
  std::vector<int32_t> types = {};  ///< as many with WindowOptions::has_types
  size_t first = 0;
  std::vector<tokenizers::Span> spans = {};  ///< of the context's tokens in it, without spaces around them
};

/// Where an answer stands in a window, first and last token; both 0, the first token's place, where the
/// window does not hold all of it.
struct TokenSpan {
  int32_t first = 0, last = 0;
};
TokenSpan find_answer(const Window& window, const Answer& answer);

/// As transformers' tokenizer(question, context, truncation="only_second", max_length, stride,
/// return_overflowing_tokens=True), with the question's leading spaces left out.
class WindowCutter {
 public:
  /// Errors: kBadData where the tokenizer has no template for two texts.
  static Result<WindowCutter> make(const WindowOptions& options);
  /// Errors: kBadData where the question leaves no room for the context, or doc_stride no progress, and where
  /// the context has no token; of encoding.
  Result<std::vector<Window>> cut(const Question& question) const;

 private:
  explicit WindowCutter(const WindowOptions& options) : options_(options) {}
  WindowOptions options_;
  size_t specials_ = 0;        ///< of a pair
  size_t before_context_ = 0;  ///< of them, those before the context's tokens
  bool is_question_first_ = true;
};

}  // namespace plimsoll::corpora
