// Message i's turn begins where the conversation before it ends, with its generation prompt, and ends where
// the conversation up to it ends, provided both texts are how the whole text begins:
//
//   render(messages[:i], prompt)   "<user>hi</s><assistant>"
//   render(messages[:i+1])         "<user>hi</s><assistant>hello</s>"
//   whole                          "<user>hi</s><assistant>hello</s><user>…"
//                                                          ^ begin  ^ end
// (A turn that begins otherwise than prompted for, with a call where the prompt would have it think, begins
// after the conversation without a prompt.) Templates that render earlier turns otherwise than the last one
// (which drop its reasoning, say) break the second condition. Then marks are put around the content: where
// rendering them changes nothing else, they tell where the content stands, and what ends a turn, learned from
// a last turn whose content is a mark, tells where it ends.
#include "templates/assistant_spans.h"

#include <fmt/format.h>

#include <optional>

#include "templates/object.h"
#include "templates/text.h"

namespace plimsoll::templates {
namespace {

class Finder {
 public:
  Finder(Conversation& conversation, std::string_view whole, std::span<const uint8_t> wanted, bool prompt,
         std::string_view eos, const RenderMessages& render)
      : conversation_(conversation),
        whole_(whole),
        wanted_(wanted),
        prompt_(prompt),
        eos_(eos),
        render_(render),
        messages_(conversation.messages) {}

  Status run(std::vector<TextSpan>& out);

 private:
  /// The bytes of `whole` that the messages render to; nothing where it begins otherwise.
  std::optional<size_t> prefix(size_t count, bool prompt) {
    std::string text;
    if (!render_(std::span(messages_).first(count), prompt, text) || !whole_.starts_with(text)) return {};
    return text.size();
  }
  void choose_marks();
  /// Where the content of message i stands, by marks around it; `begins` false: only its end is wanted.
  std::optional<TextSpan> content(size_t i, bool begins);
  std::optional<TextSpan> content_in(const Value& marked, size_t i, bool begins);
  bool marked_content(const Value& content, bool inner, bool begins, Value& out);
  bool marked_parts(const Value& parts, bool inner, bool begins, Value& out);
  bool marked_text(std::string_view text, bool inner, bool first, bool last, Value& out);
  /// What follows the content of a turn that is the last.
  std::string end_of_turn(size_t i);
  std::vector<std::string> ends_of_turn(size_t i);
  [[nodiscard]] bool calls_tools(size_t i) const;
  size_t next_content(size_t i);
  Result<size_t> end_of(size_t i, std::optional<size_t> begin, std::optional<TextSpan>& found);
  [[nodiscard]] Error lost(size_t i, std::string_view why) const {
    return {ErrorCode::kBadData,
            fmt::format("the assistant's turn messages[{}] cannot be found in the rendered text: {}", i, why),
            {},
            "mark it in the template: {% generation %}…{% endgeneration %}"};
  }

  Conversation& conversation_;
  std::string_view whole_;
  std::span<const uint8_t> wanted_;
  bool prompt_;
  std::string_view eos_;
  const RenderMessages& render_;
  std::vector<Value>& messages_;
  std::string begin_mark_ = {};
  std::string end_mark_ = {};
};

/// Private-use characters: no blanks, without case, and not in the text.
void Finder::choose_marks() {
  std::string filling;
  do {
    filling += "\U0010F0A7";
    begin_mark_ = "\U0010F0A5" + filling + "\U0010F0A5";
    end_mark_ = "\U0010F0A6" + filling + "\U0010F0A6";
  } while (whole_.find(begin_mark_) != std::string_view::npos ||
           whole_.find(end_mark_) != std::string_view::npos);
}

bool Finder::marked_text(std::string_view text, bool inner, bool first, bool last, Value& out) {
  const std::string_view core = inner ? stripped(text) : text;
  const size_t at = inner ? leading_blanks(text) : 0;
  std::string marked(text.substr(0, std::min(at, text.size())));
  if (first) marked += begin_mark_;
  marked += core;
  if (last) marked += end_mark_;
  if (at + core.size() < text.size()) marked += text.substr(at + core.size());
  return conversation_.heap.text(marked, out);
}

/// Content in parts: the first text begins it, the last one ends it.
bool Finder::marked_parts(const Value& parts, bool inner, bool begins, Value& out) {
  std::vector<Value> copies(parts.items, parts.items + parts.size);
  std::vector<size_t> texts;
  for (size_t i = 0; i < copies.size(); ++i) {
    const Entry* text = copies[i].is(Kind::kDict) ? find_entry(copies[i].dict_entries(), "text") : nullptr;
    if (text != nullptr && text->value.is_string()) texts.push_back(i);
  }
  if (texts.empty()) return false;
  for (const size_t i : texts) {
    const bool first = begins && i == texts.front(), last = i == texts.back();
    Value text;
    if ((first || last) && (!marked_text(find_entry(copies[i].dict_entries(), "text")->value.string(), inner,
                                         first, last, text) ||
                            !with_member(conversation_.heap, copies[i], "text", text, copies[i])))
      return false;
  }
  return conversation_.heap.list(copies, out);
}

bool Finder::marked_content(const Value& content, bool inner, bool begins, Value& out) {
  if (content.is_string()) return content.size > 0 && marked_text(content.string(), inner, begins, true, out);
  return content.is(Kind::kList) && marked_parts(content, inner, begins, out);
}

std::optional<TextSpan> Finder::content_in(const Value& marked, size_t i, bool begins) {
  const Value kept = messages_[i];
  std::string text;
  if (!with_member(conversation_.heap, kept, "content", marked, messages_[i])) return {};
  const bool rendered = render_(messages_, prompt_, text).ok();
  messages_[i] = kept;
  if (!rendered) return {};
  TextSpan span;
  if (begins) {
    span.begin = text.find(begin_mark_);
    if (span.begin == std::string::npos) return {};
    text.erase(span.begin, begin_mark_.size());
  }
  span.end = text.find(end_mark_);
  if (span.end == std::string::npos || span.end < span.begin) return {};
  text.erase(span.end, end_mark_.size());
  return whole_ == text ? std::optional(span) : std::nullopt;
}

std::optional<TextSpan> Finder::content(size_t i, bool begins) {
  const Entry* entry = find_entry(messages_[i].dict_entries(), "content");
  if (entry == nullptr) return {};
  const Value content = entry->value;
  for (const bool inner : {false, true}) {  // inside of its blanks where the template strips them
    Value marked;
    if (!marked_content(content, inner, begins, marked)) return {};
    if (const auto found = content_in(marked, i, begins)) return found;
  }
  return {};
}

std::string Finder::end_of_turn(size_t i) {
  Value mark, message;
  std::vector<Value> messages(messages_.begin(), messages_.begin() + static_cast<std::ptrdiff_t>(i));
  const Entry entries[] = {{Value::of(std::string_view("role")), Value::of(std::string_view("assistant"))},
                           {Value::of(std::string_view("content")), Value::of(std::string_view(end_mark_))}};
  messages.push_back(Value::dict(entries, 2));
  std::string text;
  if (!render_(messages, false, text)) return {};
  const size_t at = text.rfind(end_mark_);
  return at == std::string::npos ? std::string() : text.substr(at + end_mark_.size());
}

Result<size_t> Finder::end_of(size_t i, std::optional<size_t> begin, std::optional<TextSpan>& found) {
  if (const auto end = prefix(i + 1, false); end && (!begin || *end >= *begin)) return *end;
  if (!found) found = content(i, false);
  if (!found && !begin) return lost(i, "neither where it begins nor its content is to be recognised");
  const size_t at = found ? found->end : *begin;
  // Between the content and the end of turn there are blanks, or calls of tools.
  for (const std::string& end : ends_of_turn(i)) {
    if (end.empty() && found) return at;
    const size_t stands = end.empty() ? std::string_view::npos : whole_.find(end, at);
    if (stands == std::string_view::npos) continue;
    if (stripped(whole_.substr(at, stands - at)).empty() ||
        (calls_tools(i) && stands + end.size() <= next_content(i)))
      return stands + end.size();
  }
  return lost(i, "the template renders it otherwise when messages follow");
}

bool Finder::calls_tools(size_t i) const {
  const Entry* calls = find_entry(messages_[i].dict_entries(), "tool_calls");
  return calls != nullptr && truth(calls->value);
}

/// What message i's turn cannot go beyond: where the next message's content begins; 0 where that is not
/// known.
size_t Finder::next_content(size_t i) {
  if (i + 1 == messages_.size()) return whole_.size();
  const auto next = content(i + 1, true);
  return next ? next->begin : 0;
}

/// As end_of_turn, without the blanks behind, and without what only the last turn of all has.
std::vector<std::string> Finder::ends_of_turn(size_t i) {
  constexpr StripSides kBehind{.left = false, .right = true};
  const std::string whole = end_of_turn(i);
  std::vector<std::string> ends = {whole};
  const std::string_view short_end = stripped(std::string_view(whole), kBehind);
  std::vector<std::string_view> others = {short_end};
  if (!eos_.empty() && short_end.ends_with(eos_)) {
    const std::string_view without = short_end.substr(0, short_end.size() - eos_.size());
    others.insert(others.end(), {without, stripped(without, kBehind)});
  }
  for (const std::string_view other : others)
    if (!other.empty()) ends.emplace_back(other);
  return ends;
}

Status Finder::run(std::vector<TextSpan>& out) {
  choose_marks();
  for (size_t i = 0; i < messages_.size(); ++i) {
    if (!is_assistant(messages_[i]) || wanted_[i] == 0) continue;
    std::optional<size_t> begin = prefix(i, true);
    std::optional<TextSpan> found;
    if (!begin) {
      found = content(i, true);
      begin = found ? found->begin : prefix(i, false);  // else with the turn's header
    }
    PLIMSOLL_ASSIGN(const size_t end, end_of(i, begin, found));
    if (!begin) return lost(i, "where it begins is not to be recognised");
    if (end < *begin || (!out.empty() && *begin < out.back().end)) return lost(i, "it overlaps another turn");
    if (end > *begin) out.push_back({*begin, end});
  }
  return Ok{};
}

}  // namespace

Status find_assistant_spans(Conversation& conversation, std::string_view whole,
                            std::span<const uint8_t> wanted, bool add_generation_prompt, std::string_view eos,
                            const RenderMessages& render, std::vector<TextSpan>& out) {
  return Finder(conversation, whole, wanted, add_generation_prompt, eos, render).run(out);
}

}  // namespace plimsoll::templates
