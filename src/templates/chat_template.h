// A model's chat template read and applied: a conversation to the text that transformers' apply_chat_template
// renders, and where in it the assistant speaks.
//
//   chat_template.jinja ─► lexer ─► parser ─► scopes ─► Program          once
//   record {"messages": [...]} ─► values ─► Renderer(Program) ─► text, assistant spans
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace plimsoll::templates {

/// Bytes [begin, end) of a text.
struct TextSpan {
  size_t begin = 0;
  size_t end = 0;
  friend bool operator==(const TextSpan&, const TextSpan&) = default;
};

struct ChatText {
  std::string text = {};
  std::vector<TextSpan> assistant = {};  ///< ascending, apart from each other
  int untrained = 0;    ///< assistant's messages that say that they are not trained on ("train", "weight")
  int other_roles = 0;  ///< messages of others that say that they are
};

/// What a template may cost, whatever it says; beyond it a render is an error.
struct ChatLimits {
  int64_t max_output_bytes = int64_t{64} << 20;
  int64_t max_memory_bytes = int64_t{512} << 20;  ///< all values that one render makes
  int64_t max_steps = 50'000'000;                 ///< nodes evaluated and items or bytes gone through
};

struct ChatOptions {
  /// Read instead of the directory's template; the special tokens stay the directory's.
  std::string template_file = {};
  /// Seconds since 1970 that strftime_now takes for now, in UTC; else the clock and the local time zone.
  std::optional<int64_t> now = {};
  ChatLimits limits = {};
};

/// Whether render also finds the assistant's spans.
enum class AssistantSpans { kFind, kSkip };

struct ChatTemplateParts;

/// A chat template: the subset of Jinja2 that the templates of public models use, as transformers configures
/// it (trim_blocks, lstrip_blocks, loop controls, {% generation %}, an immutable sandbox). Immutable; every
/// call may come from any thread.
class ChatTemplate {
 public:
  /// Reads the template of a model directory: chat_template.jinja, else `chat_template` of
  /// tokenizer_config.json (a text, or a list of named ones: "tool_use" serves records with tools, "default"
  /// the others). The special tokens of tokenizer_config.json or special_tokens_map.json (bos_token and so
  /// on) are its variables. `path` may also name a template's own file; then those of its folder are. Errors:
  /// kBadData that names file and line: no template, broken syntax, a tag, filter, test or function that is
  /// not known, or is Jinja2's and no public template's; kIo.
  static Result<std::unique_ptr<ChatTemplate>> open(const std::string& path, const ChatOptions& options = {});
  /// The same; null where a directory has none.
  static Result<std::unique_ptr<ChatTemplate>> open_if_any(const std::string& path,
                                                           const ChatOptions& options = {});
  /// The same from the template's text; `source` names it in errors, `special_tokens` are (name, text).
  static Result<std::unique_ptr<ChatTemplate>> parse(
      std::string_view text, const std::string& source,
      const std::vector<std::pair<std::string, std::string>>& special_tokens = {},
      const ChatOptions& options = {});
  ~ChatTemplate();

  /// Renders a conversation: a JSON object with "messages", and perhaps "tools", "documents", and
  /// "chat_template_kwargs", an object whose members become variables ("enable_thinking"); other members are
  /// not looked at. As apply_chat_template does, members of messages that are null are left out, and the
  /// reasoning is seen under all of its names (reasoning_content, thinking, reasoning).
  /// With kFind, `out.assistant` are the assistant's turns with what ends them: the template's
  /// {% generation %} blocks; without those, for each assistant message, what it adds to the text of the
  /// conversation before it (ended by its generation prompt); where a template rewrites earlier turns, the
  /// place of the content, found by marks around it, and the end of turn behind it. Turns of messages that
  /// are not to be trained on ("train": false, "weight": 0) are not among them. Errors: kBadData: a record
  /// that is no such object, the template's own raise_exception, an error in the template (named with file
  /// and line), a limit, spans that cannot be found; with kFind also a message whose "train" or "weight" is
  /// neither yes nor no. `out` is then unspecified.
  Status render(std::string_view record_json, bool add_generation_prompt, ChatText& out,
                AssistantSpans spans = AssistantSpans::kFind) const;

  /// Whether the template says itself what the assistant speaks, by {% generation %}.
  [[nodiscard]] bool marks_generation() const;
  /// Whether the template asks for the date (strftime_now).
  [[nodiscard]] bool asks_for_date() const;
  /// The file (and member) that the template was read from.
  [[nodiscard]] const std::string& source() const;

 private:
  explicit ChatTemplate(std::unique_ptr<const ChatTemplateParts> parts);
  std::unique_ptr<const ChatTemplateParts> parts_;
};

}  // namespace plimsoll::templates
