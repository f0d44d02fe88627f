#include "generate/chat.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/host.h"
#include "base/text_layout.h"
#include "generate/line_reader.h"

namespace plimsoll::generate {
namespace {

/// No vocabulary's tokens are as long on average; a line beyond that is not worth reading.
constexpr int64_t kLineBytesPerToken = 32;

/// A line, and those that follow where it ends in a backslash. What was typed while an answer came stands
/// behind its prompt once more: on the terminal it stands within the answer.
Result<std::optional<std::string>> read_turn(LineReader& lines, bool prompts, telemetry::Sink& sink) {
  std::string turn;
  for (const char* prompt = "> ";; prompt = "… ") {
    const bool repeats = prompts && lines.is_ahead();
    if (prompts) sink.write_message(prompt);
    PLIMSOLL_ASSIGN(auto line, lines.next());
    if (repeats && line) sink.write_message(harmless(*line) + "\n");
    if (!line) return turn.empty() ? std::nullopt : std::optional(std::move(turn));
    const bool goes_on = line->ends_with('\\');
    if (goes_on) line->back() = '\n';
    turn += *line;
    if (!goes_on) return std::optional(std::move(turn));
  }
}

}  // namespace

Chat::Chat(const TextCodec& codec, const ChatFormat& format, runtime::Session& session,
           const ChatOptions& options, telemetry::Sink& sink)
    : codec_(codec),
      format_(format),
      options_(options),
      generator_(session, options.generator),
      sink_(sink),
      output_(codec, options.output, sink),
      is_terminal_(sink.audience().dialogue) {
  sequence_[0].ids.reserve(static_cast<size_t>(options.context_tokens) + 1);
}

int64_t Chat::memory_bytes(int64_t context_tokens) {
  // Ids three times over; the conversation as messages, as a record, as the template's values and its text.
  constexpr int64_t kIds = 4 * sizeof(int32_t), kText = 8 * 16, kTemplate = 1 << 20;
  return context_tokens * (kIds + kText + kLineBytesPerToken) + kTemplate;
}

Status Chat::run() {
  if (is_terminal_)
    sink_.message("/clear begins a new conversation, /exit or Ctrl-D ends; a line that ends in \\ continues");
  LineReader lines(options_.context_tokens * kLineBytesPerToken, options_.stop);
  while (true) {
    PLIMSOLL_ASSIGN(const auto line, read_turn(lines, is_terminal_, sink_));
    if (!line && is_terminal_) sink_.message("");
    if (!line || *line == "/exit" || *line == "/quit") return Ok{};
    if (*line == "/clear") messages_.items.clear();
    if (*line == "/clear" || line->find_first_not_of(" \t\n") == std::string::npos) continue;
    PLIMSOLL_TRY(take_turn(*line));
    if (is_terminal_ && options_.forget_interrupt) options_.forget_interrupt();
    if (is_asked(options_.stop)) return Ok{};
  }
}

Status Chat::take_turn(const std::string& line) {
  messages_.items.push_back(message("user", line));
  Status fits = fit();
  if (fits) return answer(line);
  if (!is_terminal_) return fits;
  messages_.items.pop_back();
  const Error error = std::move(fits).error();
  sink_.message(fmt::format("error: {}{}", error.message(), error.hint.empty() ? "" : "; " + error.hint));
  return Ok{};
}

/// Renders the conversation, without its oldest turns where it leaves too little room for an answer.
Status Chat::fit() {
  const int64_t room =
      std::min(options_.generator.max_new_tokens, std::max<int64_t>(1, options_.context_tokens / 4));
  for (size_t left_out = 0;; left_out += 2) {
    PLIMSOLL_ASSIGN(const std::string text, format_.render(io::Tree::map({{"messages", messages_}})));
    ids_.clear();
    PLIMSOLL_TRY(codec_.encode_rendered(text, ids_));
    const auto tokens = static_cast<int64_t>(ids_.size());
    if (tokens > 0 && tokens + room - 1 <= options_.context_tokens) {
      if (left_out > 0)
        note(fmt::format(
            "the conversation is longer than the context of {} tokens: its first {} messages are left out",
            options_.context_tokens, left_out));
      return Ok{};
    }
    if (messages_.items.size() < 3)
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("a turn of {} tokens leaves no room for an answer of {} in a context of {}",
                               tokens, room, options_.context_tokens),
                   {},
                   "shorten it, or give a larger --context"};
    messages_.items.erase(messages_.items.begin(), messages_.items.begin() + 2);
  }
}

/// Tokens that the cache holds as prefill writes them, so that a conversation's bits do not depend on how it
/// came about: those of answers are written once more.
int64_t Chat::shared_tokens() const {
  const auto [a, b] = std::ranges::mismatch(prefilled_, ids_);
  return std::min<int64_t>(a - prefilled_.begin(), static_cast<int64_t>(ids_.size()) - 1);
}

Status Chat::answer(const std::string& line) {
  Sequence& s = sequence_[0];
  s.ids.assign(ids_.begin(), ids_.end());
  s.prompt_tokens = static_cast<int64_t>(ids_.size());
  s.cached_tokens = shared_tokens();
  s.room_tokens = options_.context_tokens - s.prompt_tokens + 1;
  s.index = static_cast<uint32_t>(turns_++);
  s.finish = Finish::kNone;
  prefilled_.clear();
  const std::vector<Prompt> prompts{{.text = line, .ids = ids_}};
  output_.begin_batch(prompts, s.index);
  PLIMSOLL_TRY(generator_.run(
      sequence_, [&](const Sequence& sequence, int32_t id) { return output_.token(sequence, id); },
      [this] { return is_asked(options_.stop); }));
  output_.end_batch(sequence_);
  messages_.items.push_back(message("assistant", output_.text()));
  if (s.ids.size() > ids_.size()) prefilled_.assign(ids_.begin(), ids_.end() - 1);  // else it was interrupted
  return Ok{};
}

}  // namespace plimsoll::generate
