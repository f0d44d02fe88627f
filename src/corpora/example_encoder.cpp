// Ids are the tokenizer's; the mask follows from where each token ends in the text.
#include "corpora/example_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "corpora/reasons.h"

namespace plimsoll::corpora {
namespace {

BadExample bad(const Example& example, std::string_view reason, Error error) {
  if (error.hint.empty()) error.hint = kSkipHint;
  return {reason, std::move(error).at(place_of(example.file, example.line))};
}

/// A line's own failure in what knows nothing of lines: here it can be passed over, which is the better hint.
BadExample bad_line(const Example& example, std::string_view reason, Error error) {
  if (error.code == ErrorCode::kBadData) error.hint.clear();
  return bad(example, reason, std::move(error));
}

/// Whether `id` ends the ids, blanks behind it aside: ChatML's templates write a line break there.
bool ends_with(const tokenizers::Tokenizer& tokenizer, std::span<const int32_t> ids, int32_t id) {
  for (size_t i = ids.size(); i-- > 0;) {
    if (ids[i] == id) return true;
    if (tokenizer.decode(ids.subspan(i, 1), false).find_first_not_of(" \t\r\n") != std::string::npos)
      return false;
  }
  return false;
}

/// Marks the tokens that have a byte of a span in them. `ends`: where each ends; tokens with the same end are
/// parts of one character and go together. Spans are ascending.
void mark(std::span<const size_t> ends, std::span<const templates::TextSpan> spans,
          std::vector<uint8_t>& in_loss) {
  in_loss.assign(ends.size(), 0);
  size_t begin = 0;  // where the token at hand begins
  size_t span = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    if (i > 0 && ends[i] != ends[i - 1]) begin = ends[i - 1];
    while (span < spans.size() && spans[span].end <= begin) ++span;
    if (span == spans.size()) return;
    const templates::TextSpan& at = spans[span];
    in_loss[i] = at.begin < at.end && ends[i] > at.begin && ends[i] > begin;
  }
}

/// Whether `border`, within the text, is within a token too.
bool splits_token(std::span<const size_t> ends, size_t border) {
  if (border == 0 || ends.empty() || border >= ends.back()) return false;
  return !std::binary_search(ends.begin(), ends.end(), border);
}

/// Empty stands for "all".
void simplify(std::vector<uint8_t>& in_loss) {
  if (std::find(in_loss.begin(), in_loss.end(), 0) == in_loss.end()) in_loss.clear();
}

}  // namespace

std::optional<LossScope> parse_loss_scope(std::string_view name) {
  constexpr std::pair<std::string_view, LossScope> kNames[] = {{"auto", LossScope::kAuto},
                                                               {"all", LossScope::kAll},
                                                               {"completions", LossScope::kCompletions},
                                                               {"assistant", LossScope::kAssistant},
                                                               {"all_assistant", LossScope::kAllAssistant},
                                                               {"trl", LossScope::kTrl}};
  for (const auto& [known, scope] : kNames)
    if (known == name) return scope;
  return std::nullopt;
}

std::optional<AppendEnd> parse_append_end(std::string_view name) {
  constexpr std::pair<std::string_view, AppendEnd> kNames[] = {{"auto", AppendEnd::kAuto},
                                                               {"true", AppendEnd::kAlways},
                                                               {"false", AppendEnd::kNever},
                                                               {"trl", AppendEnd::kTrl}};
  for (const auto& [known, append] : kNames)
    if (known == name) return append;
  return std::nullopt;
}

std::vector<std::string> remark_lines(const EncodingRemarks& remarks) {
  std::vector<std::string> lines;
  const auto examples = [](int64_t count) {
    return fmt::format("{} example{}", count, count == 1 ? "" : "s");
  };
  if (remarks.split_prompts > 0)
    lines.push_back(
        fmt::format("in {} the prompt ends inside a token, which counts as completion; a blank "
                    "between the two belongs to the completion's start",
                    examples(remarks.split_prompts)));
  if (remarks.unended > 0)
    lines.push_back(
        fmt::format("the completions of {} have no end: nothing says which token ends a document; "
                    "set eos_token in tokenizer_config.json",
                    examples(remarks.unended)));
  const auto add = [&](int64_t count, std::string_view what) {
    if (count > 0) lines.push_back(fmt::format(fmt::runtime(what), examples(count)));
  };
  add(remarks.packed_rows,
      "{} of tokens held several documents, by seq_lengths, position_ids, cu_seqlens or the like: they are "
      "documents of their own");
  add(remarks.texts_beside,
      "in {} there are \"input_ids\" as well as a text or a conversation: the tokens are trained on, as in "
      "TRL");
  add(remarks.idle_labels,
      "in {} there are \"labels\" or a mask of tokens without \"input_ids\": they are not read");
  add(remarks.idle_systems,
      "in {} there is a \"system\" message with a prompt that is a text: it is not read; write it into the "
      "prompt, or "
      "make messages of both");
  add(remarks.idle_flags,
      "in {} messages say that they are not trained on (train, weight), and data.loss trains on all of a "
      "conversation");
  add(remarks.other_roles,
      "in {} messages of other roles than the assistant's say that they are trained on (train, weight), "
      "which "
      "they are not");
  for (std::string& line : remarks.invalid.lines()) lines.push_back(std::move(line));
  return lines;
}

std::optional<BadExample> ExampleEncoder::encode(const Example& example, Scratch& scratch,
                                                 EncodedExample& out) const {
  out.ids.clear();
  out.in_loss.clear();
  out.ends.clear();
  out.remarks = {.texts_beside = example.has_text_beside,
                 .idle_labels = example.has_idle_labels,
                 .idle_systems = example.has_idle_system};
  std::optional<BadExample> wrong;
  switch (example.kind) {
    case ExampleKind::kText:
      wrong = encode_text(example, out);
      break;
    case ExampleKind::kCompletion:
      wrong = encode_completion(example, scratch, out);
      break;
    case ExampleKind::kTokens:
      wrong = take_tokens(example, out);
      break;
    case ExampleKind::kMessages:
      wrong = encode_messages(example, scratch, out);
      break;
  }
  if (!wrong && !out.ends.empty()) return end_documents(out), std::nullopt;
  if (wrong || example.continues || !appends(example, out)) return wrong;
  out.ids.push_back(options_.append_id);
  if (!out.in_loss.empty()) out.in_loss.push_back(1);
  return std::nullopt;
}

bool ExampleEncoder::appends(const Example& example, EncodedExample& out) const {
  if (options_.append == AppendEnd::kNever) return false;
  if (options_.append == AppendEnd::kAlways)
    return options_.append_id >= 0 &&
           ((example.kind != ExampleKind::kMessages && example.kind != ExampleKind::kTokens) ||
            !ends_with(tokenizer_, out.ids, options_.append_id));
  const bool is_line_of_text = example.kind == ExampleKind::kText && example.line > 0;
  if (example.kind != ExampleKind::kCompletion && !(options_.append == AppendEnd::kTrl && is_line_of_text))
    return false;
  if (out.ids.empty()) return false;
  if (options_.append_id < 0) out.remarks.unended = 1;
  return options_.append_id >= 0 && out.ids.back() != options_.append_id;
}

void ExampleEncoder::end_documents(EncodedExample& out) const {
  if (options_.append != AppendEnd::kAlways || options_.append_id < 0) return;
  EncodedExample ended;
  size_t begin = 0;
  for (const size_t end : out.ends) {
    const std::span ids(out.ids.data() + begin, end - begin);
    ended.ids.insert(ended.ids.end(), ids.begin(), ids.end());
    if (!out.in_loss.empty())
      ended.in_loss.insert(ended.in_loss.end(), out.in_loss.data() + begin, out.in_loss.data() + end);
    if (!ends_with(tokenizer_, ids, options_.append_id)) {
      ended.ids.push_back(options_.append_id);
      if (!out.in_loss.empty()) ended.in_loss.push_back(1);
    }
    ended.ends.push_back(ended.ids.size());
    begin = end;
  }
  ended.remarks = out.remarks;
  out = std::move(ended);
}

std::optional<BadExample> ExampleEncoder::encode_text(const Example& example, EncodedExample& out) const {
  Status encoded = tokenizer_.encode_piece(example.text, example.first, !example.continues,
                                           options_.add_special_tokens, out.ids);
  if (encoded) return std::nullopt;
  return bad_line(example, corpora::reason::kUnencodable, std::move(encoded).error());
}

std::optional<BadExample> ExampleEncoder::take_tokens(const Example& example, EncodedExample& out) const {
  const auto beyond = std::find_if(example.ids.begin(), example.ids.end(),
                                   [this](int32_t id) { return id >= tokenizer_.vocab_size(); });
  if (beyond != example.ids.end())
    return bad(example, corpora::reason::kUnencodable,
               {ErrorCode::kBadData,
                fmt::format("\"input_ids\" holds {}, and the tokenizer has {} ids", *beyond,
                            tokenizer_.vocab_size()),
                {},
                "tokenize the data with the model's own tokenizer"});
  out.ids = example.ids;
  out.ends = example.ends;
  out.remarks.packed_rows = !example.ends.empty();
  if (options_.loss != LossScope::kAll) out.in_loss = example.in_loss;
  return std::nullopt;
}

std::optional<BadExample> ExampleEncoder::encode_marked(const Example& example, std::string_view whole,
                                                        bool add_special_tokens,
                                                        std::span<const templates::TextSpan> spans,
                                                        Scratch& scratch, EncodedExample& out) const {
  scratch.ends.clear();
  Status encoded = tokenizer_.encode_with_ends(whole, add_special_tokens, out.ids, scratch.ends);
  if (!encoded) return bad_line(example, corpora::reason::kUnencodable, std::move(encoded).error());
  mark(scratch.ends, spans, out.in_loss);
  simplify(out.in_loss);
  return std::nullopt;
}

std::optional<BadExample> ExampleEncoder::encode_completion(const Example& example, Scratch& scratch,
                                                            EncodedExample& out) const {
  scratch.joined.assign(example.text).append(example.completion);
  const templates::TextSpan target{example.text.size(), scratch.joined.size()};
  if (options_.loss != LossScope::kAll && options_.loss != LossScope::kAllAssistant) {
    auto wrong =
        encode_marked(example, scratch.joined, options_.add_special_tokens, {&target, 1}, scratch, out);
    out.remarks.split_prompts = !wrong && splits_token(scratch.ends, example.text.size());
    return wrong;
  }
  Status encoded = tokenizer_.encode(scratch.joined, options_.add_special_tokens, out.ids);
  if (encoded) return std::nullopt;
  return bad_line(example, corpora::reason::kUnencodable, std::move(encoded).error());
}

std::optional<BadExample> ExampleEncoder::render(const Example& example, LossScope scope, Scratch& scratch,
                                                 EncodingRemarks& remarks) const {
  const bool all = scope == LossScope::kAll || (scope == LossScope::kTrl && example.prompt_record.empty());
  const bool after_prompt = !example.prompt_record.empty() && !all && scope != LossScope::kAllAssistant;
  bool turns = !all && (!after_prompt || scope == LossScope::kAssistant);
  scratch.prompt_chat.text.clear();
  templates::ChatText& whole = scratch.chat;
  Status rendered =
      template_->render(example.record, false, whole,
                        turns ? templates::AssistantSpans::kFind : templates::AssistantSpans::kSkip);
  // Which messages of a completion count shows in the turns alone.
  if (rendered && !all && !turns && whole.untrained > 0)
    rendered = template_->render(example.record, false, whole, templates::AssistantSpans::kFind),
    turns = true;
  if (!rendered) return bad_line(example, corpora::reason::kTemplate, std::move(rendered).error());
  remarks.idle_flags = all && whole.untrained > 0;
  remarks.other_roles = !all && whole.other_roles > 0;
  if (all) whole.assistant.assign(1, {0, whole.text.size()});
  if (!after_prompt) return std::nullopt;
  templates::ChatText& prompt = scratch.prompt_chat;
  rendered = template_->render(example.prompt_record, true, prompt, templates::AssistantSpans::kSkip);
  if (!rendered) return bad_line(example, corpora::reason::kTemplate, std::move(rendered).error());
  if (!whole.text.starts_with(prompt.text))
    return bad(example, corpora::reason::kTemplate,
               {ErrorCode::kBadData,
                "the chat template writes the prompt otherwise once the completion follows",
                {},
                "use --loss all, or a template that marks what the assistant says ({% generation %})"});
  if (!turns) whole.assistant.assign(1, {prompt.text.size(), whole.text.size()});
  std::erase_if(whole.assistant,
                [&](const templates::TextSpan& span) { return span.begin < prompt.text.size(); });
  return std::nullopt;
}

std::optional<BadExample> ExampleEncoder::encode_messages(const Example& example, Scratch& scratch,
                                                          EncodedExample& out) const {
  if (!template_) {
    Error error{ErrorCode::kBadData,
                "the line is a conversation, and there is no chat template",
                {},
                "name a model's directory that has one as the tokenizer, or a file: --chat-template"};
    return bad(example, corpora::reason::kTemplate, options_.template_error.value_or(error));
  }
  if (auto wrong = render(example, options_.loss, scratch, out.remarks)) return wrong;
  if (options_.loss != LossScope::kAll) {
    auto wrong = encode_marked(example, scratch.chat.text, false, scratch.chat.assistant, scratch, out);
    out.remarks.split_prompts = !wrong && splits_token(scratch.ends, scratch.prompt_chat.text.size());
    return wrong;
  }
  Status encoded = tokenizer_.encode(scratch.chat.text, false, out.ids);
  if (encoded) return std::nullopt;
  return bad_line(example, corpora::reason::kUnencodable, std::move(encoded).error());
}

}  // namespace plimsoll::corpora
