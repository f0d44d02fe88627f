#include "corpora/labelled/question.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "corpora/json_members.h"
#include "corpora/labelled/python_space.h"
#include "corpora/reasons.h"
#include "tokenizers/unicode.h"

namespace plimsoll::corpora {
namespace {

using corpora::reason::kBadLabel;
using corpora::reason::kMissingField;
using corpora::reason::kNotAnObject;
using corpora::reason::kNotJson;
using corpora::reason::kWrongType;

/// The byte at which character number `index` begins; nothing beyond the text's end.
std::optional<size_t> byte_of(std::string_view text, int64_t index) {
  size_t at = 0;
  for (; index > 0 && at < text.size(); --index) do
      ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  return index == 0 ? std::optional(at) : std::nullopt;
}

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

class QuestionParser {
 public:
  QuestionParser(const std::string& place, bool with_answers, std::vector<Question>& questions,
                 std::vector<BadExample>* passed_over)
      : place_(place), with_answers_(with_answers), questions_(questions), passed_over_(passed_over) {}

  std::optional<BadExample> run(std::string_view json) {
    JsonScanner scanner(json);
    std::string_view value;
    if (!scanner.value(value) || !scanner.expect_end())
      return bad(kNotJson, "the line is no JSON: " + scanner.error());
    if (!is_object(value))
      return bad(kNotAnObject, fmt::format("the line is {}, expected an object", type_name(value)));
    constexpr std::string_view kKeys[] = {"data", "context", "paragraphs"};
    const Members members = members_of(value, kKeys);
    const std::string_view data = find(members, "data");
    if (!find(members, "context").empty()) return counted(value, {});
    if (is_list(find(members, "paragraphs"))) return article(value);
    if (!is_list(data)) return counted(value, {});
    return each(data, [&](std::string_view article) { return this->article(article); });
  }

 private:
  BadExample bad(std::string_view reason, std::string what) const {
    const std::string where =
        id_.empty() ? place_ : fmt::format("{}, question '{}'", place_, id_.substr(0, 60));
    return {reason, {ErrorCode::kBadData, std::move(what), where, kSkipHint}};
  }

  template <class Visit>
  static std::optional<BadExample> each(std::string_view list, Visit visit) {
    ListItems items(list);
    for (std::string_view item; items.next(item);)
      if (auto wrong = visit(item)) return wrong;
    return std::nullopt;
  }

  std::optional<BadExample> article(std::string_view article) {
    constexpr std::string_view kKeys[] = {"paragraphs"};
    const Members members = is_object(article) ? members_of(article, kKeys) : Members();
    const std::string_view paragraphs = find(members, "paragraphs");
    if (!is_list(paragraphs)) return bad(kMissingField, "an element of \"data\" has no list \"paragraphs\"");
    return each(paragraphs, [&](std::string_view each) { return paragraph(each); });
  }

  std::optional<BadExample> paragraph(std::string_view paragraph) {
    constexpr std::string_view kKeys[] = {"context", "qas"};
    const Members members = is_object(paragraph) ? members_of(paragraph, kKeys) : Members();
    const std::string_view qas = find(members, "qas");
    if (!is_list(qas)) return bad(kMissingField, "a paragraph has no list \"qas\"");
    std::string context;
    if (auto wrong = string_into(members, "context", context)) return wrong;
    return each(qas, [&](std::string_view qa) { return counted(qa, context); });
  }

  std::optional<BadExample> string_into(const Members& members, std::string_view key,
                                        std::string& out) const {
    const std::string_view value = find(members, key);
    if (value.empty()) return bad(kMissingField, fmt::format("the question has no \"{}\"", key));
    if (!is_string(value))
      return bad(kWrongType, fmt::format("\"{}\" is {}, expected a string", key, type_name(value)));
    out = unescaped(value);
    return std::nullopt;
  }

  /// A question that is wrong is left out where that is asked for.
  std::optional<BadExample> counted(std::string_view json, const std::optional<std::string>& context) {
    const size_t before = questions_.size();
    id_.clear();
    auto wrong = question(json, context);
    id_.clear();
    if (!wrong || passed_over_ == nullptr) return wrong;
    questions_.resize(before);
    passed_over_->push_back(std::move(*wrong));
    return std::nullopt;
  }

  /// `context`: of its paragraph; nothing where it stands beside the question.
  std::optional<BadExample> question(std::string_view json, const std::optional<std::string>& context) {
    if (!is_object(json)) return bad(kNotAnObject, "a question is no object");
    constexpr std::string_view kKeys[] = {"id", "question", "context", "answers"};
    const Members members = members_of(json, kKeys);
    Question& q = questions_.emplace_back();
    if (const std::string_view id = find(members, "id"); is_string(id))
      q.id = unescaped(id);
    else
      q.id = std::string(id);
    id_ = q.id;
    if (auto wrong = string_into(members, "question", q.question)) return wrong;
    if (context)
      q.context = *context;
    else if (auto wrong = string_into(members, "context", q.context))
      return wrong;
    return answers(find(members, "answers"), q);
  }

  std::optional<BadExample> answers(std::string_view value, Question& q) const {
    q.has_answers = !value.empty();
    if (!q.has_answers)
      return with_answers_ ? std::optional(bad(kMissingField, "the question has no \"answers\""))
                           : std::nullopt;
    if (is_list(value)) return each(value, [&](std::string_view item) { return answer(item, q); });
    if (!is_object(value))
      return bad(kWrongType,
                 fmt::format("\"answers\" is {}, expected an object or a list", type_name(value)));
    constexpr std::string_view kKeys[] = {"text", "answer_start"};
    const Members members = members_of(value, kKeys);
    const std::string_view texts = find(members, "text"), starts = find(members, "answer_start");
    if (!is_list(texts) || !is_list(starts))
      return bad(kMissingField, "\"answers\" has no lists \"text\" and \"answer_start\"");
    ListItems of_text(texts), of_start(starts);
    std::string_view text, start;
    for (;;) {
      const bool more = of_text.next(text);
      if (more != of_start.next(start))
        return bad(kBadLabel, "the lists \"text\" and \"answer_start\" of \"answers\" are not as long");
      if (!more) return std::nullopt;
      if (auto wrong = add(text, start, q)) return wrong;
    }
  }

  std::optional<BadExample> answer(std::string_view item, Question& q) const {
    constexpr std::string_view kKeys[] = {"text", "answer_start"};
    const Members members = is_object(item) ? members_of(item, kKeys) : Members();
    return add(find(members, "text"), find(members, "answer_start"), q);
  }

  std::optional<BadExample> add(std::string_view text, std::string_view start, Question& q) const {
    int64_t index = -1;
    const auto [rest, error] = std::from_chars(start.data(), start.data() + start.size(), index);
    if (!is_string(text) || error != std::errc() || rest != start.data() + start.size() || index < 0)
      return bad(kBadLabel, "an answer needs a string \"text\" and an \"answer_start\" from 0 on");
    Answer answer{.text = unescaped(text)};
    const auto begin = byte_of(q.context, index);
    if (answer.text.empty()) return bad(kBadLabel, "an answer is an empty text");
    if (!begin || std::string_view(q.context).substr(*begin, answer.text.size()) != answer.text)
      return bad(kBadLabel, fmt::format("the answer '{}' does not stand at character {} of the context",
                                        answer.text.substr(0, 60), index));
    answer.begin = *begin;
    q.answers.push_back(std::move(answer));
    return std::nullopt;
  }

  const std::string& place_;
  const bool with_answers_;
  std::vector<Question>& questions_;
  std::vector<BadExample>* const passed_over_;
  std::string id_;  ///< of the question at hand
};

/// As Python's lstrip().
std::string_view without_leading_spaces(std::string_view text) {
  while (!text.empty() && tokenizers::valid_utf8_prefix(text.substr(0, 4)) > 0) {
    const tokenizers::CodePoint c = tokenizers::decode(text.data());
    if (!is_python_space(c)) break;
    text.remove_prefix(static_cast<size_t>(c.length));
  }
  return text;
}

/// A token's span without the spaces around its text; one of spaces alone stays empty where it ends.
tokenizers::Span trimmed(std::string_view text, tokenizers::Span span) {
  while (span.begin < span.end && is_space(text[span.begin])) ++span.begin;
  while (span.end > span.begin && is_space(text[span.end - 1])) --span.end;
  return span;
}

}  // namespace

std::optional<BadExample> parse_questions(std::string_view json, const std::string& place, bool with_answers,
                                          std::vector<Question>& questions,
                                          std::vector<BadExample>* passed_over) {
  questions.clear();
  return QuestionParser(place, with_answers, questions, passed_over).run(json);
}

TokenSpan find_answer(const Window& window, const Answer& answer) {
  // Spaces around it are in no token's span.
  const tokenizers::Span text = trimmed(answer.text, {0, answer.text.size()});
  const size_t begin = answer.begin + text.begin, end = answer.begin + text.end;
  const auto& spans = window.spans;
  if (spans.empty() || spans.front().begin > begin || spans.back().end < end) return {};
  size_t first = 0, last = spans.size() - 1;
  while (first + 1 < spans.size() && spans[first + 1].begin <= begin) ++first;
  while (last > 0 && spans[last - 1].end >= end) --last;
  return {static_cast<int32_t>(window.first + first), static_cast<int32_t>(window.first + last)};
}

Result<WindowCutter> WindowCutter::make(const WindowOptions& options) {
  WindowCutter cutter(options);
  constexpr int32_t kOfQuestion = -1, kOfContext = -2;
  std::vector<int32_t> ids;
  PLIMSOLL_TRY(options.tokenizer->join(std::span(&kOfQuestion, 1), std::span(&kOfContext, 1), ids));
  cutter.specials_ = ids.size() - 2;
  const auto context = std::ranges::find(ids, kOfContext) - ids.begin();
  const auto question = std::ranges::find(ids, kOfQuestion) - ids.begin();
  cutter.is_question_first_ = question < context;
  cutter.before_context_ = static_cast<size_t>(context) - (cutter.is_question_first_ ? 1 : 0);
  return cutter;
}

Result<std::vector<Window>> WindowCutter::cut(const Question& question) const {
  const auto refused = [](std::string what, std::string hint) {
    return Error{ErrorCode::kBadData, std::move(what), {}, std::move(hint)};
  };
  const std::string_view asked = without_leading_spaces(question.question);
  std::vector<int32_t> of_question, of_context;
  std::vector<tokenizers::Span> spans;
  PLIMSOLL_TRY(options_.tokenizer->encode(asked, false, of_question));
  PLIMSOLL_TRY(options_.tokenizer->encode_with_spans(question.context, false, of_context, spans));
  if (of_context.empty()) return refused("the context has no token", kSkipHint);
  const int64_t room = options_.max_tokens - static_cast<int64_t>(specials_ + of_question.size());
  const bool is_whole = static_cast<int64_t>(of_context.size()) <= room;
  if (room < 1 || (!is_whole && room <= options_.doc_stride))
    return refused(
        fmt::format("the question has {} tokens, which leaves {} of {} to the context, and windows "
                    "share {}",
                    of_question.size(), std::max<int64_t>(0, room), options_.max_tokens, options_.doc_stride),
        "allow more tokens (data.sequence_length), or fewer that windows share (qa.doc_stride)");
  std::vector<Window> windows;
  const auto most = static_cast<size_t>(room);
  const size_t step = is_whole ? most : static_cast<size_t>(room - options_.doc_stride);
  for (size_t begin = 0;; begin += step) {
    const size_t end = std::min(begin + most, of_context.size());
    Window& window = windows.emplace_back();
    window.first = before_context_ + (is_question_first_ ? of_question.size() : 0);
    PLIMSOLL_TRY(options_.tokenizer->join(of_question, std::span(of_context).subspan(begin, end - begin),
                                          window.ids, options_.has_types ? &window.types : nullptr));
    for (size_t i = begin; i < end; ++i) window.spans.push_back(trimmed(question.context, spans[i]));
    if (end == of_context.size()) return windows;
  }
}

}  // namespace plimsoll::corpora
