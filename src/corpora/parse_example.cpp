// The members of a line are found in one pass, then the kind of example follows from which are there.
#include "corpora/parse_example.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "corpora/example_line.h"
#include "corpora/json_scan.h"
#include "corpora/parse_conversation.h"
#include "corpora/parse_instruction.h"
#include "corpora/parse_tokens.h"
#include "corpora/reasons.h"
#include "tokenizers/unicode.h"

namespace plimsoll::corpora {
namespace {

constexpr Keys kKnown = Keys(kExampleMembers).first(11);
/// Lists and objects, which may stand in a text of their own, as tools do in TRL's and LLaMA-Factory's rows.
constexpr std::string_view kMaybeInText[] = {"messages",  "conversations", "tools",
                                             "documents", "history",       "chat_template_kwargs"};

/// A list or an object of JSON that a text holds; empty where it holds neither.
std::string json_in(std::string_view string) {
  std::string text = unescaped(string);
  JsonScanner scanner(text);
  std::string_view value;
  if (!scanner.value(value) || !scanner.expect_end() || !(is_list(value) || is_object(value))) return {};
  const auto begin = static_cast<size_t>(value.data() - text.data()), size = value.size();
  for (const size_t at : scanner.lone_surrogates()) text.replace(at, 6, "\\ufffd");
  return text.substr(begin, size);
}

/// One line's way to an example.
class Parser {
 public:
  Parser(std::string_view json, Example& example, Prefers prefers)
      : json_(json), example_(example), prefers_(prefers), line_(example) {}

  std::optional<BadExample> run(std::string_view text_key) {
    clear();
    JsonScanner scanner(json_);
    if (!json_.empty() && json_.find_first_not_of(" \t\r\n") != json_.npos && !scanner.take('{'))
      return no_object();
    scanner = JsonScanner(json_);
    const Keys keys = text_key.empty() ? Keys(kExampleMembers) : Keys(&text_key, 1);
    if (!scan_object(scanner, keys, line_.members) || !scanner.expect_end())
      return line_.bad(reason::kNotJson, "the line is no JSON: " + scanner.error());
    if (!text_key.empty()) return text(text_key);
    for (const std::string_view key : kKnown)
      if (auto twice = line_.check_once(key)) return twice;
    take_out_of_texts();
    if ((line_.has("chosen") || line_.has("rejected")) && !line_.has("completion") && !line_.has("messages"))
      return preference_pair();
    example_.has_text_beside = has_text();
    if (line_.has("input_ids") && !(prefers_ == Prefers::kText && example_.has_text_beside)) return tokens();
    example_.has_text_beside = false;
    example_.has_idle_labels =
        line_.has("labels") || line_.has("completion_mask") || line_.has("assistant_masks");
    if (line_.has("messages") || line_.has("conversations") || is_list(line_.get("prompt")) ||
        is_list(line_.get("completion"))) {
      if (repair(scanner.lone_surrogates())) return Parser(repaired_, example_, prefers_).run(text_key);
      if (line_.has("messages")) return parse_messages(line_, example_);
      if (line_.has("conversations")) return parse_share_gpt(line_, example_);
    }
    if (line_.has("prompt") || line_.has("completion")) return prompt_and_completion();
    if (line_.has("text")) return text("text");
    if (line_.has("instruction") || line_.has("output")) return parse_instruction(line_, example_);
    return nothing_known();
  }

 private:
  bool has_text() const {
    constexpr std::string_view kTexts[] = {"text",       "messages",    "conversations", "prompt",
                                           "completion", "instruction", "output"};
    return std::any_of(std::begin(kTexts), std::end(kTexts),
                       [this](std::string_view key) { return line_.has(key); });
  }

  void clear() {
    example_.kind = ExampleKind::kText;
    example_.first = true;
    example_.continues = false;
    example_.has_text_beside = example_.has_idle_labels = example_.has_idle_system = false;
    example_.ends.clear();
    for (std::string* field :
         {&example_.text, &example_.completion, &example_.record, &example_.prompt_record})
      field->clear();
  }

  /// What is not an object may still be something that can be named.
  BadExample no_object() const {
    JsonScanner scanner(json_);
    std::string_view value;
    if (!scanner.value(value) || !scanner.expect_end())
      return line_.bad(reason::kNotJson, "the line is no JSON: " + scanner.error());
    return line_.bad(reason::kNotAnObject,
                     fmt::format("the line is {}, expected an object", type_name(value)));
  }

  void take_out_of_texts() {
    for (Member& member : line_.members) {
      const bool maybe =
          std::find(std::begin(kMaybeInText), std::end(kMaybeInText), member.key) != std::end(kMaybeInText);
      if (!maybe || !is_string(member.value)) continue;
      if (member.value == R"("")") {
        member.value = "null";
      } else if (std::string json = json_in(member.value); !json.empty()) {
        member.value = taken_out_.emplace_back(std::move(json));
      }
    }
  }

  /// What the chat template's reader would refuse is made good: halves of surrogate pairs and invalid UTF-8.
  bool repair(const std::vector<size_t>& lone_surrogates) {
    const bool valid = tokenizers::valid_utf8_prefix(json_) == json_.size();
    if (valid && lone_surrogates.empty()) return false;
    std::string copy(json_);
    for (const size_t at : lone_surrogates) copy.replace(at, 6, "\\ufffd");
    tokenizers::append_repaired(copy, repaired_);
    return true;
  }

  std::optional<BadExample> text(std::string_view key) {
    if (auto twice = line_.check_once(key)) return twice;
    return line_.string_into(key, example_.text);
  }

  std::optional<BadExample> tokens() {
    example_.kind = ExampleKind::kTokens;
    const TokenMembers members = {.input_ids = line_.get("input_ids"),
                                  .labels = line_.get("labels"),
                                  .completion_mask = line_.get("completion_mask"),
                                  .assistant_masks = line_.get("assistant_masks"),
                                  .attention_mask = line_.get("attention_mask"),
                                  .position_ids = line_.get("position_ids"),
                                  .seq_lengths = line_.get("seq_lengths"),
                                  .cu_seqlens = line_.get("cu_seqlens"),
                                  .cu_seq_lens_q = line_.get("cu_seq_lens_q"),
                                  .seq_idx = line_.get("seq_idx")};
    auto wrong = parse_tokens(members, {example_.ids, example_.in_loss, example_.ends});
    return wrong ? std::optional(line_.bad(reason::kWrongType, std::move(*wrong))) : std::nullopt;
  }

  std::optional<BadExample> prompt_and_completion() {
    if (is_list(line_.get("prompt")) || is_list(line_.get("completion")))
      return parse_prompt_messages(line_, example_);
    example_.kind = ExampleKind::kCompletion;
    example_.has_idle_system = line_.has("system") && line_.get("system") != R"("")";
    if (auto wrong = line_.string_into("prompt", example_.text)) return wrong;
    return line_.string_into("completion", example_.completion);
  }

  BadExample preference_pair() const {
    Error error = line_
                      .bad(reason::kPreference,
                           "the line is a preference pair (chosen, rejected), for which there is no task")
                      .error;
    error.hint =
        "to train on what was chosen, rename it: \"chosen\" to \"completion\" next to a \"prompt\", a list "
        "of "
        "messages without one to \"messages\"";
    return {reason::kPreference, std::move(error)};
  }

  BadExample nothing_known() const {
    std::string names;
    for (const std::string& key : first_keys(json_, 8))
      names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", key.substr(0, 40));
    Error error = line_
                      .bad(reason::kMissingField, fmt::format("the line has nothing to train on, it has {}",
                                                              names.empty() ? "no members" : "only " + names))
                      .error;
    error.hint =
        "expected are text, messages, conversations, prompt and completion, instruction and output, or "
        "input_ids; "
        "--text-key names another member that holds the text";
    return {reason::kMissingField, std::move(error)};
  }

  std::string_view json_;
  Example& example_;
  Prefers prefers_;
  ExampleLine line_;
  std::deque<std::string> taken_out_;  ///< JSON of members that are texts
  std::string repaired_;
};

}  // namespace

std::optional<BadExample> parse_example(std::string_view json, std::string_view text_key, Example& example,
                                        Prefers prefers) {
  return Parser(json, example, prefers).run(text_key);
}

std::optional<BadExample> to_example(std::string_view bytes, const Record& record,
                                     const std::vector<std::string>& files, std::string_view text_key,
                                     Example& example, Prefers prefers) {
  const std::string_view content = bytes.substr(record.begin, record.size);
  example.file = files[record.file];
  example.line = record.line;
  if (record.is_json) return parse_example(content, text_key, example, prefers);
  example.kind = ExampleKind::kText;
  example.text = content;
  example.first = record.first;
  example.continues = record.continues;
  return std::nullopt;
}

}  // namespace plimsoll::corpora
