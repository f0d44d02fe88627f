// Reading a template once, and the way of a record through it.
#include "templates/chat_template.h"

#include <fmt/format.h>

#include <algorithm>

#include "io/json_cursor.h"
#include "templates/assistant_spans.h"
#include "templates/conversation.h"
#include "templates/heap.h"
#include "templates/object.h"
#include "templates/parser.h"
#include "templates/renderer.h"
#include "templates/template_files.h"
#include "templates/trained_messages.h"

namespace plimsoll::templates {

struct ChatTemplateParts {
  std::unique_ptr<const Program> chat = {};
  std::unique_ptr<const Program> tool_use = {};  ///< null: the same
  std::string source = {};
  std::string tool_source = {};
  std::vector<std::pair<std::string, std::string>> special_tokens = {};
  ChatOptions options = {};
};

namespace {

constexpr const char* kRewrite =
    "rewrite that line with what templates of public models use (docs/data.md lists it), or name another "
    "template's file";

Result<std::unique_ptr<const Program>> compile_named(std::string_view text, const std::string& source) {
  if (io::utf8_error_at(text) >= 0)
    return Error{ErrorCode::kBadData, "the chat template is no UTF-8", source, "save it as UTF-8"};
  auto program = compile(text);
  if (!program) {
    Error error = std::move(program).error().at(source);
    if (error.hint.empty()) error.hint = kRewrite;
    return error;
  }
  return std::unique_ptr<const Program>(std::move(program).value());
}

Result<std::unique_ptr<const ChatTemplateParts>> make_parts(TemplateFiles files, const ChatOptions& options) {
  auto parts = std::make_unique<ChatTemplateParts>();
  PLIMSOLL_ASSIGN(parts->chat, compile_named(files.chat.text, files.chat.source));
  if (!files.tool_use.source.empty()) {
    PLIMSOLL_ASSIGN(parts->tool_use, compile_named(files.tool_use.text, files.tool_use.source));
  }
  parts->source = std::move(files.chat.source);
  parts->tool_source = std::move(files.tool_use.source);
  parts->special_tokens = std::move(files.special_tokens);
  parts->options = options;
  return std::unique_ptr<const ChatTemplateParts>(std::move(parts));
}

/// What a name that the template does not set stands for.
Value outside_value(std::string_view name, const ChatTemplateParts& parts, const Conversation& conversation) {
  if (name == "tools") return conversation.tools;
  if (name == "documents") return conversation.documents;
  if (const Entry* entry = find_entry(conversation.variables, name)) return entry->value;
  for (const auto& [token, text] : parts.special_tokens)
    if (token == name) return Value::of(std::string_view(text));
  if (name == "raise_exception") return Value::of(Function::kRaiseException);
  if (name == "strftime_now") return Value::of(Function::kStrftimeNow);
  if (name == "range") return Value::of(Function::kRange);
  if (name == "namespace") return Value::of(Function::kNamespace);
  if (name == "dict") return Value::of(Function::kDict);
  return Value::undefined(name);
}

/// One conversation, rendered as often as it takes.
class Rendering {
 public:
  Rendering(const ChatTemplateParts& parts, Conversation& conversation)
      : parts_(parts),
        conversation_(conversation),
        with_tools_(parts.tool_use != nullptr && !conversation.tools.is(Kind::kNone)),
        program_(with_tools_ ? *parts.tool_use : *parts.chat) {
    for (const std::string_view name : program_.outside)
      outside_.push_back(outside_value(name, parts, conversation));
  }

  Status render(std::span<const Value> messages, bool add_generation_prompt, ChatText& out) {
    const ChatLimits& limits = parts_.options.limits;
    Heap heap(limits.max_memory_bytes, limits.max_steps, limits.max_output_bytes);
    for (size_t i = 0; i < outside_.size(); ++i) {
      if (program_.outside[i] == "messages") outside_[i] = Value::list(messages.data(), messages.size());
      if (program_.outside[i] == "add_generation_prompt") outside_[i] = Value::of(add_generation_prompt);
    }
    Renderer renderer(program_, heap, outside_, parts_.options.now);
    out.text.clear();
    out.assistant.clear();
    if (!renderer.run(out.text, out.assistant)) {
      const std::string& source = with_tools_ ? parts_.tool_source : parts_.source;
      const bool is_refused = heap.why().find("is not supported") != std::string::npos;
      return Error{ErrorCode::kBadData, heap.why(), fmt::format("{}: line {}", source, renderer.line()),
                   is_refused ? kRewrite : ""};
    }
    knows_spans_ = program_.has_generation && !renderer.generation_lost();
    return Ok{};
  }

  Status find_spans(bool add_generation_prompt, const TrainedMessages& messages, ChatText& out) {
    if (knows_spans_) return leave_out(add_generation_prompt, messages, out);
    out.assistant.clear();
    return find_turns(add_generation_prompt, messages.trained, out.text, out.assistant);
  }

 private:
  /// The turns of those assistant's messages that `wanted` has.
  Status find_turns(bool add_generation_prompt, std::span<const uint8_t> wanted, std::string_view whole,
                    std::vector<TextSpan>& out) {
    ChatText other;
    const auto again = [this, &other](std::span<const Value> messages, bool prompt,
                                      std::string& text) -> Status {
      PLIMSOLL_TRY(render(messages, prompt, other));
      text.swap(other.text);
      return Ok{};
    };
    std::string_view eos;
    for (const auto& [name, text] : parts_.special_tokens)
      if (name == "eos_token") eos = text;
    return find_assistant_spans(conversation_, whole, wanted, add_generation_prompt, eos, again, out);
  }

  /// Of what the template marks, the messages that are not trained on: by their number where each has a mark,
  /// else by where their turns stand.
  Status leave_out(bool add_generation_prompt, const TrainedMessages& messages, ChatText& out) {
    if (messages.untrained == 0) return Ok{};
    std::vector<uint8_t> of_assistant, untrained(messages.trained.size(), 0);
    for (size_t i = 0; i < messages.trained.size(); ++i) {
      untrained[i] = messages.trained[i] == 0 ? 1 : 0;
      if (is_assistant(conversation_.messages[i])) of_assistant.push_back(messages.trained[i]);
    }
    if (of_assistant.size() == out.assistant.size()) {
      size_t i = 0;
      std::erase_if(out.assistant, [&](const TextSpan&) { return of_assistant[i++] == 0; });
      return Ok{};
    }
    std::vector<TextSpan> turns;
    PLIMSOLL_TRY(find_turns(add_generation_prompt, untrained, out.text, turns));
    std::erase_if(out.assistant, [&](const TextSpan& span) {
      return std::any_of(turns.begin(), turns.end(), [&](const TextSpan& turn) {
        return span.begin < turn.end && turn.begin < span.end;
      });
    });
    return Ok{};
  }

  const ChatTemplateParts& parts_;
  Conversation& conversation_;
  bool with_tools_;
  const Program& program_;
  std::vector<Value> outside_ = {};
  bool knows_spans_ = false;
};

}  // namespace

ChatTemplate::ChatTemplate(std::unique_ptr<const ChatTemplateParts> parts) : parts_(std::move(parts)) {}
ChatTemplate::~ChatTemplate() = default;

Result<std::unique_ptr<ChatTemplate>> ChatTemplate::open(const std::string& path,
                                                         const ChatOptions& options) {
  PLIMSOLL_ASSIGN(TemplateFiles files, read_template_files(path, options.template_file));
  PLIMSOLL_ASSIGN(auto parts, make_parts(std::move(files), options));
  return std::unique_ptr<ChatTemplate>(new ChatTemplate(std::move(parts)));
}

Result<std::unique_ptr<ChatTemplate>> ChatTemplate::open_if_any(const std::string& path,
                                                                const ChatOptions& options) {
  PLIMSOLL_ASSIGN(auto files, find_template_files(path, options.template_file));
  if (!files) return std::unique_ptr<ChatTemplate>();
  PLIMSOLL_ASSIGN(auto parts, make_parts(*std::move(files), options));
  return std::unique_ptr<ChatTemplate>(new ChatTemplate(std::move(parts)));
}

Result<std::unique_ptr<ChatTemplate>> ChatTemplate::parse(
    std::string_view text, const std::string& source,
    const std::vector<std::pair<std::string, std::string>>& special_tokens, const ChatOptions& options) {
  TemplateFiles files{.chat = {.text = std::string(text), .source = source},
                      .special_tokens = special_tokens};
  PLIMSOLL_ASSIGN(auto parts, make_parts(std::move(files), options));
  return std::unique_ptr<ChatTemplate>(new ChatTemplate(std::move(parts)));
}

Status ChatTemplate::render(std::string_view record_json, bool add_generation_prompt, ChatText& out,
                            AssistantSpans spans) const {
  const ChatLimits& limits = parts_->options.limits;
  Heap heap(limits.max_memory_bytes, limits.max_steps, limits.max_output_bytes);
  Conversation conversation(heap);
  PLIMSOLL_TRY(read_conversation(record_json, conversation));
  Rendering rendering(*parts_, conversation);
  PLIMSOLL_TRY(rendering.render(conversation.messages, add_generation_prompt, out));
  const Result<TrainedMessages> messages = trained_messages(conversation.messages);
  out.untrained = messages ? messages->untrained : 1;  // whoever looks closer is told why
  out.other_roles = messages ? messages->other_roles : 0;
  if (spans == AssistantSpans::kSkip) {
    out.assistant.clear();
    return Ok{};
  }
  if (!messages) return messages.error();
  return rendering.find_spans(add_generation_prompt, *messages, out);
}

bool ChatTemplate::marks_generation() const { return parts_->chat->has_generation; }
bool ChatTemplate::asks_for_date() const {
  const auto asks = [](const Program* program) {
    return program != nullptr && std::find(program->outside.begin(), program->outside.end(),
                                           "strftime_now") != program->outside.end();
  };
  return asks(parts_->chat.get()) || asks(parts_->tool_use.get());
}
const std::string& ChatTemplate::source() const { return parts_->source; }

}  // namespace plimsoll::templates
