// A chat template, then, behind a NUL, a record (or else a fixed one): what compiles renders to valid UTF-8
// or fails with a line, the same each time, and its spans lie in the text in order.
#include "templates/chat_template.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "io/json_cursor.h"

namespace {

constexpr plimsoll::templates::ChatLimits kLimits{
    .max_output_bytes = 1 << 20, .max_memory_bytes = 16 << 20, .max_steps = 200'000};

constexpr std::string_view kRecord =
    R"({"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "hi \u00e9\n"},
    {"role": "assistant", "content": " ok ", "tool_calls": [{"function": {"name": "f", "arguments": {"a": [1, 2.5, null]}}}]},
    {"role": "tool", "content": "r"}, {"role": "assistant", "content": "done"}],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
    "chat_template_kwargs": {"n": 3, "s": "a b", "l": [3, 1, 2], "d": {"k": true}}})";

void check_record(const plimsoll::templates::ChatTemplate& chat, std::string_view record, bool prompt) {
  plimsoll::templates::ChatText out, again;
  const auto skip = plimsoll::templates::AssistantSpans::kSkip;
  const plimsoll::Status status = chat.render(record, prompt, out, skip);
  PLIMSOLL_CHECK(chat.render(record, prompt, again, skip).ok() == status.ok(), "fails now and then");
  if (!status) {
    PLIMSOLL_CHECK(!status.error().what.empty(), "a failure without its reason");
    return;
  }
  PLIMSOLL_CHECK(out.text == again.text, "another text the second time");
  PLIMSOLL_CHECK(plimsoll::io::utf8_error_at(out.text) < 0, "broken UTF-8 rendered");
  if (!chat.render(record, prompt, again)) return;
  PLIMSOLL_CHECK(out.text == again.text, "spans change the text");
  size_t at = 0;
  for (const plimsoll::templates::TextSpan& span : again.assistant) {
    PLIMSOLL_CHECK(span.begin >= at && span.end > span.begin && span.end <= out.text.size(), "an odd span");
    at = span.end;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(input.find('\0'), input.size());
  const auto chat = plimsoll::templates::ChatTemplate::parse(input.substr(0, end), "template",
                                                             {{"bos_token", "<s>"}, {"eos_token", "</s>"}},
                                                             {.now = 1735689600, .limits = kLimits});
  if (!chat) {
    PLIMSOLL_CHECK(!chat.error().what.empty(), "a failure without its reason");
    return 0;
  }
  check_record(**chat, kRecord, false);
  check_record(**chat, end < size ? input.substr(end + 1) : kRecord, true);
  return 0;
}
