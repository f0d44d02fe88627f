// The members of a line are found in one pass, then the kind of example follows from which are there.
#include "corpora/parse_example.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>

#include "corpora/json_members.h"
#include "corpora/json_scan.h"
#include "corpora/parse_tokens.h"
#include "corpora/reasons.h"
#include "tokenizers/unicode.h"

namespace plimsoll::corpora {
namespace {

constexpr Keys kKnown = Keys(kExampleMembers).first(11);
/// Beside the messages. What else a line has may be anything that Python writes, NaN too.
constexpr Keys kSeen = Keys(kExampleMembers).last(3);
constexpr std::string_view kOfMessages[] = {"role", "from", "value"};
/// Lists and objects, which may stand in a text of their own, as tools do in TRL's and LLaMA-Factory's rows.
constexpr std::string_view kMaybeInText[] = {"messages",  "conversations", "tools",
                                             "documents", "history",       "chat_template_kwargs"};

void append_member(std::string& out, std::string_view key, std::string_view value) {
  if (out.back() != '{') out += ", ";
  append_quoted(key, out);
  out.append(": ").append(value);
}

/// The role that a speaker's name in ShareGPT files stands for; empty where it is not known.
std::string_view role_of_speaker(std::string_view from) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 15> kRoles = {{
      {"human", "user"},
      {"user", "user"},
      {"gpt", "assistant"},
      {"assistant", "assistant"},
      {"chatgpt", "assistant"},
      {"model", "assistant"},
      {"bing", "assistant"},
      {"bard", "assistant"},
      {"function_call", "assistant"},
      {"system", "system"},
      {"tool", "tool"},
      {"observation", "tool"},
      {"function", "tool"},
      {"function_response", "tool"},
      {"developer", "developer"},
  }};
  for (const auto& [name, role] : kRoles)
    if (name == from) return role;
  return {};
}

constexpr std::string_view kWithInput =
    "Below is an instruction that describes a task, paired with an input that provides further context. "
    "Write a response that appropriately completes the request.";
constexpr std::string_view kWithoutInput =
    "Below is an instruction that describes a task. Write a response that appropriately completes the "
    "request.";
constexpr std::string_view kInstruction = "\n\n### Instruction:\n", kInput = "\n\n### Input:\n",
                           kResponse = "\n\n### Response:\n";

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
      : json_(json), example_(example), prefers_(prefers) {}

  std::optional<BadExample> run(std::string_view text_key) {
    clear();
    JsonScanner scanner(json_);
    if (!json_.empty() && json_.find_first_not_of(" \t\r\n") != json_.npos && !scanner.take('{'))
      return no_object();
    scanner = JsonScanner(json_);
    const Keys keys = text_key.empty() ? Keys(kExampleMembers) : Keys(&text_key, 1);
    if (!scan_object(scanner, keys, members_) || !scanner.expect_end())
      return bad(reason::kNotJson, "the line is no JSON: " + scanner.error());
    if (!text_key.empty()) return text(text_key);
    for (const std::string_view key : kKnown)
      if (auto twice = check_once(key)) return twice;
    take_out_of_texts();
    if ((has("chosen") || has("rejected")) && !has("completion") && !has("messages"))
      return preference_pair();
    example_.has_text_beside = has_text();
    if (has("input_ids") && !(prefers_ == Prefers::kText && example_.has_text_beside)) return tokens();
    example_.has_text_beside = false;
    example_.has_idle_labels = has("labels") || has("completion_mask") || has("assistant_masks");
    if (has("messages") || has("conversations") || is_list(get("prompt")) || is_list(get("completion"))) {
      if (repair(scanner.lone_surrogates())) return Parser(repaired_, example_, prefers_).run(text_key);
      if (has("messages")) return messages();
      if (has("conversations")) return share_gpt();
    }
    if (has("prompt") || has("completion")) return prompt_and_completion();
    if (has("text")) return text("text");
    if (has("instruction") || has("output")) return alpaca();
    return nothing_known();
  }

 private:
  std::string_view get(std::string_view key) const { return find(members_, key); }
  bool has(std::string_view key) const { return !get(key).empty(); }
  bool has_text() const {
    constexpr std::string_view kTexts[] = {"text",       "messages",    "conversations", "prompt",
                                           "completion", "instruction", "output"};
    return std::any_of(std::begin(kTexts), std::end(kTexts),
                       [this](std::string_view key) { return has(key); });
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

  BadExample bad(std::string_view reason, std::string what) const {
    return {reason,
            {ErrorCode::kBadData, std::move(what), place_of(example_.file, example_.line), kSkipHint}};
  }

  /// What is not an object may still be something that can be named.
  BadExample no_object() const {
    JsonScanner scanner(json_);
    std::string_view value;
    if (!scanner.value(value) || !scanner.expect_end())
      return bad(reason::kNotJson, "the line is no JSON: " + scanner.error());
    return bad(reason::kNotAnObject, fmt::format("the line is {}, expected an object", type_name(value)));
  }

  void take_out_of_texts() {
    for (Member& member : members_) {
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

  std::optional<BadExample> check_once(std::string_view key) const {
    const auto same = [key](const Member& member) { return member.key == key; };
    if (std::count_if(members_.begin(), members_.end(), same) < 2) return std::nullopt;
    return bad(reason::kDuplicateKey, fmt::format("the line has \"{}\" twice", key));
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

  std::optional<BadExample> string_into(std::string_view key, std::string& out) const {
    const std::string_view value = get(key);
    if (value.empty()) return bad(reason::kMissingField, fmt::format("the line has no \"{}\"", key));
    if (!is_string(value))
      return bad(reason::kWrongType, fmt::format("\"{}\" is {}, expected a string", key, type_name(value)));
    append_unescaped(value, out);
    return std::nullopt;
  }

  std::optional<BadExample> text(std::string_view key) {
    if (auto twice = check_once(key)) return twice;
    return string_into(key, example_.text);
  }

  std::optional<BadExample> tokens() {
    example_.kind = ExampleKind::kTokens;
    const TokenMembers members = {.input_ids = get("input_ids"),
                                  .labels = get("labels"),
                                  .completion_mask = get("completion_mask"),
                                  .assistant_masks = get("assistant_masks"),
                                  .attention_mask = get("attention_mask"),
                                  .position_ids = get("position_ids"),
                                  .seq_lengths = get("seq_lengths"),
                                  .cu_seqlens = get("cu_seqlens"),
                                  .cu_seq_lens_q = get("cu_seq_lens_q"),
                                  .seq_idx = get("seq_idx")};
    auto wrong = parse_tokens(members, {example_.ids, example_.in_loss, example_.ends});
    return wrong ? std::optional(bad(reason::kWrongType, std::move(*wrong))) : std::nullopt;
  }

  /// As LLaMA-Factory's template of that name: "system" in place of the first sentences, the turns of
  /// "history" before the instruction.
  std::optional<BadExample> alpaca() {
    std::string instruction, input, system;
    if (auto wrong = string_into("instruction", instruction)) return wrong;
    if (has("input"))
      if (auto wrong = string_into("input", input)) return wrong;
    if (has("system"))
      if (auto wrong = string_into("system", system)) return wrong;
    if (auto wrong = string_into("output", example_.completion)) return wrong;
    example_.kind = ExampleKind::kCompletion;
    example_.text.append(system.empty() ? (input.empty() ? kWithoutInput : kWithInput) : system);
    if (auto wrong = append_history(example_.text)) return wrong;
    example_.text.append(kInstruction).append(instruction);
    if (!input.empty()) example_.text.append(kInput).append(input);
    example_.text.append(kResponse);
    return std::nullopt;
  }

  /// Turns before an alpaca row's instruction: pairs of two texts.
  std::optional<BadExample> append_history(std::string& out) const {
    if (!has("history")) return std::nullopt;
    const auto wrong = [this](std::string what) {
      return bad(reason::kBadConversation, std::move(what) + ", expected pairs of two texts");
    };
    if (!is_list(get("history"))) return wrong(fmt::format("\"history\" is {}", type_name(get("history"))));
    ListItems turns(get("history"));
    size_t i = 0;
    for (std::string_view turn; turns.next(turn); ++i) {
      std::vector<std::string_view> texts;
      if (is_list(turn)) {
        ListItems items(turn);
        for (std::string_view item; items.next(item);) texts.push_back(item);
      }
      if (texts.size() != 2 || !is_string(texts[0]) || !is_string(texts[1]))
        return wrong(
            fmt::format("history[{}] is {}", i,
                        is_list(turn) ? fmt::format("a list of {}", texts.size()) : type_name(turn)));
      append_unescaped(texts[0], out.append(kInstruction));
      append_unescaped(texts[1], out.append(kResponse));
    }
    return std::nullopt;
  }

  std::optional<BadExample> prompt_and_completion() {
    if (is_list(get("prompt")) || is_list(get("completion"))) return prompt_messages();
    example_.kind = ExampleKind::kCompletion;
    example_.has_idle_system = has("system") && get("system") != R"("")";
    if (auto wrong = string_into("prompt", example_.text)) return wrong;
    return string_into("completion", example_.completion);
  }

  /// Whether a list is one of messages: objects, each with a role.
  std::optional<BadExample> check_messages(std::string_view key, std::string_view list) const {
    if (list.empty()) return bad(reason::kMissingField, fmt::format("the line has no \"{}\"", key));
    if (!is_list(list))
      return bad(reason::kWrongType, fmt::format("\"{}\" is {}, expected a list", key, type_name(list)));
    ListItems items(list);
    size_t i = 0;
    for (std::string_view item; items.next(item); ++i) {
      if (!is_object(item))
        return bad(reason::kBadConversation,
                   fmt::format("{}[{}] is {}, expected an object", key, i, type_name(item)));
      const Members members = members_of(item, kOfMessages);
      if (key == "conversations" && find(members, "role").empty()) continue;
      if (!is_string(find(members, "role")))
        return bad(reason::kBadConversation, fmt::format("{}[{}] has no \"role\" that is a string", key, i));
    }
    if (i == 0) return bad(reason::kBadConversation, fmt::format("\"{}\" is empty", key));
    return std::nullopt;
  }

  std::optional<BadExample> messages() {
    example_.kind = ExampleKind::kMessages;
    if (auto wrong = check_messages("messages", get("messages"))) return wrong;
    std::string list;
    if (auto wrong = with_system(get("messages"), list)) return wrong;
    write_record(list, example_.record);
    return std::nullopt;
  }

  /// The messages of `list` behind the one that "system" holds, where the line has it.
  std::optional<BadExample> with_system(std::string_view list, std::string& out) const {
    const std::string_view system = get("system");
    out = list;
    if (system.empty() || system == R"("")") return std::nullopt;
    if (!is_string(system))
      return bad(reason::kWrongType, fmt::format("\"system\" is {}, expected a string", type_name(system)));
    constexpr std::string_view kOfSystem[] = {"role", "content"};
    ListItems items(list);
    std::string_view first;
    items.next(first);
    const Members members = members_of(first, kOfSystem);
    if (const std::string_view role = find(members, "role"); role == R"("system")") {
      const std::string_view content = find(members, "content");
      if (is_string(content) && unescaped(content) == unescaped(system)) return std::nullopt;
      return bad(reason::kBadConversation,
                 "\"system\" is not what the conversation's own system message says");
    }
    out = "[";
    out.append(R"({"role": "system", "content": )").append(system).append("}, ").append(list.substr(1));
    return std::nullopt;
  }

  /// `list` as the messages of an object that keeps what else of the line a chat template sees.
  void write_record(std::string_view list, std::string& out) const {
    out = "{";
    append_member(out, "messages", list);
    for (const Member& member : members_)
      if (std::find(kSeen.begin(), kSeen.end(), member.key) != kSeen.end())
        append_member(out, member.key, member.value);
    out += '}';
  }

  std::optional<BadExample> prompt_messages() {
    example_.kind = ExampleKind::kMessages;
    const std::string_view prompt = get("prompt"), completion = get("completion");
    if (auto wrong = check_messages("prompt", prompt)) return wrong;
    if (auto wrong = check_messages("completion", completion)) return wrong;
    std::string before;
    if (auto wrong = with_system(prompt, before)) return wrong;
    std::string all(before, 0, before.size() - 1);
    all.append(", ").append(completion.substr(1));
    write_record(all, example_.record);
    write_record(before, example_.prompt_record);
    return std::nullopt;
  }

  std::optional<BadExample> append_turn(std::string_view turn, size_t index, std::string& list) const {
    const Members members = members_of(turn, kOfMessages);
    if (list.size() > 1) list += ", ";
    if (!find(members, "role").empty()) return list.append(turn), std::nullopt;
    const std::string_view from = find(members, "from");
    const std::string_view value = find(members, "value");
    if (!is_string(from) || !is_string(value))
      return bad(reason::kBadConversation,
                 fmt::format("conversations[{}] has no \"from\" and \"value\" that are strings", index));
    const std::string speaker = unescaped(from);
    const std::string_view role = role_of_speaker(speaker);
    if (role.empty())
      return bad(reason::kBadConversation,
                 fmt::format("conversations[{}] is from '{}', which is no known speaker", index,
                             speaker.substr(0, 60)));
    list.append(R"({"role": ")").append(role).append(R"(", "content": )").append(value).append("}");
    return std::nullopt;
  }

  std::optional<BadExample> share_gpt() {
    example_.kind = ExampleKind::kMessages;
    const std::string_view turns = get("conversations");
    if (auto wrong = check_messages("conversations", turns)) return wrong;
    std::string list = "[", whole;
    ListItems items(turns);
    size_t i = 0;
    for (std::string_view item; items.next(item); ++i)
      if (auto wrong = append_turn(item, i, list)) return wrong;
    if (auto wrong = with_system(list + "]", whole)) return wrong;
    write_record(whole, example_.record);
    return std::nullopt;
  }

  BadExample preference_pair() const {
    Error error = bad(reason::kPreference,
                      "the line is a preference pair (chosen, rejected), for which there is no task")
                      .error;
    error.hint =
        "to train on what was chosen, rename it: \"chosen\" to \"completion\" beside a \"prompt\", a list of "
        "messages without one to \"messages\"";
    return {reason::kPreference, std::move(error)};
  }

  BadExample nothing_known() const {
    std::string names;
    for (const std::string& key : first_keys(json_, 8))
      names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", key.substr(0, 40));
    Error error = bad(reason::kMissingField, fmt::format("the line has nothing to train on, it has {}",
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
  Members members_;
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
