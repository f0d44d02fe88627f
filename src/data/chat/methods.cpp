// The methods of str, dict, list and tuple. Those that would change their object are known but forbidden, as
// in the sandbox that transformers renders in.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "data/chat/format.h"
#include "data/chat/object.h"
#include "data/chat/print.h"
#include "data/chat/rules.h"
#include "data/chat/text.h"
#include "data/chat/text_filters.h"
#include "data/tokenizer/unicode.h"

namespace plimsoll::chat {
namespace {

bool give(Value value, Value& out) {
  out = value;
  return true;
}

template <bool Left, bool Right>
bool strip(const Value& self, Arguments& call, Value& out) {
  constexpr StripSides kSides{.left = Left, .right = Right};
  std::string_view letters;
  if (!call.has(0) || call.bound[0]->is(Kind::kNone))
    return call.heap.charge_bytes(self.size) && give(Value::of(stripped(self.string(), kSides)), out);
  if (!call.string(0, {}, letters) || !call.heap.charge(strip_steps(self.string(), letters))) return false;
  return give(Value::of(stripped(self.string(), letters, kSides)), out);
}

template <Case Which>
bool change_case(const Value& self, Arguments& call, Value& out) {
  return call.heap.charge_bytes(4 * size_t{self.size}) && call.heap.text(in_case(self.string(), Which), out);
}

/// A part of a text given by start and end, in characters as Python counts them, and where it starts.
struct Part {
  std::string_view text;
  int64_t start = 0;
  bool exists = true;  // a start behind the end finds nothing, not even the empty text
};
bool part_of(const Value& self, Arguments& call, size_t start_at, Part& out) {
  out.text = self.string();
  if (!call.has(start_at) && !call.has(start_at + 1)) return true;
  if (!call.heap.charge_bytes(2 * size_t{self.size})) return false;
  const auto size = static_cast<int64_t>(num_characters(self.string()));
  int64_t start = 0, end = size;
  if (call.has(start_at) && !call.bound[start_at]->is(Kind::kNone) && !call.integer(start_at, 0, start))
    return false;
  if (call.has(start_at + 1) && !call.bound[start_at + 1]->is(Kind::kNone) &&
      !call.integer(start_at + 1, size, end))
    return false;
  const auto clamped = [size](int64_t i) { return i < 0 ? std::max<int64_t>(i + size, 0) : i; };
  out.start = clamped(start);
  end = std::min(clamped(end), size);
  out.exists = out.start <= end;
  out.text = out.exists ? characters(self.string(), static_cast<size_t>(out.start), static_cast<size_t>(end))
                        : std::string_view();
  return true;
}

template <bool Starts>
bool has_affix(const Value& self, Arguments& call, Value& out) {
  Part part;
  if (!part_of(self, call, 1, part)) return false;
  const Value& given = *call.bound[0];
  const std::span<const Value> affixes = given.is(Kind::kTuple) ? given.list_items() : std::span(&given, 1);
  bool found = false;
  for (const Value& affix : affixes) {
    if (!affix.is_string()) return call.fail(fmt::format("expected a text, not {}", type_name(affix)));
    if (!call.heap.charge(1 + std::min(affix.string().size(), part.text.size()) / 16)) return false;
    found = found || (part.exists &&
                      (Starts ? part.text.starts_with(affix.string()) : part.text.ends_with(affix.string())));
  }
  return give(Value::of(found), out);
}

template <bool Last, bool Fails>
bool find(const Value& self, Arguments& call, Value& out) {
  Part part;
  std::string_view wanted;
  if (!call.string(0, {}, wanted) || !part_of(self, call, 1, part) ||
      !call.heap.charge(search_steps(part.text, wanted)))
    return false;
  const size_t at = !part.exists ? std::string_view::npos
                    : Last       ? find_last(part.text, wanted)
                                 : find_first(part.text, wanted);
  if (at == std::string_view::npos) return Fails ? call.fail("not found") : give(Value::of(int64_t{-1}), out);
  return give(Value::of(part.start + static_cast<int64_t>(num_characters(part.text.substr(0, at)))), out);
}

bool count(const Value& self, Arguments& call, Value& out) {
  Part part;
  std::string_view wanted;
  if (!call.string(0, {}, wanted) || !part_of(self, call, 1, part) ||
      !call.heap.charge(search_steps(part.text, wanted)))
    return false;
  int64_t found = 0;
  if (!part.exists) return give(Value::of(found), out);
  if (wanted.empty()) return give(Value::of(static_cast<int64_t>(num_characters(part.text)) + 1), out);
  std::string_view rest = part.text;
  for (size_t at = 0; (at = find_first(rest, wanted)) != std::string_view::npos; ++found) {
    if (!call.heap.charge(1)) return false;
    rest.remove_prefix(at + wanted.size());
  }
  return give(Value::of(found), out);
}

bool replace(const Value& self, Arguments& call, Value& out) {
  std::string_view old, with;
  int64_t times = -1;
  return call.string(0, {}, old) && call.string(1, {}, with) && call.integer(2, -1, times) &&
         replaced(call.heap, self.string(), old, with, times, out);
}

bool join(const Value& self, Arguments& call, Value& out) {
  std::span<const Value> items;
  if (!items_of(call.heap, *call.bound[0], items)) return false;
  std::string text;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!items[i].is_string())
      return call.fail(fmt::format("item {} is a {}, not a text", i, type_name(items[i])));
    if (i > 0) text += self.string();
    text += items[i].string();
    if (!call.heap.charge(1) || !call.heap.room(text.size())) return false;
  }
  return call.heap.text(text, out);
}

/// At blanks; the rest behind the last cut keeps its own.
void split_blanks(std::string_view text, int64_t times, std::vector<Value>& parts) {
  text = stripped(text, {.left = true, .right = false});
  while (!text.empty()) {
    if (times-- == 0) return parts.push_back(Value::of(text));
    size_t end = 0;
    while (end < text.size()) {
      const tokenizer::CodePoint c = tokenizer::decode(text.data() + end);
      if (is_blank(c.value)) break;
      end += static_cast<size_t>(c.length);
    }
    parts.push_back(Value::of(text.substr(0, end)));
    text = stripped(text.substr(end), {.left = true, .right = false});
  }
}

void rsplit_blanks(std::string_view text, int64_t times, std::vector<Value>& parts) {
  text = stripped(text, {.left = false, .right = true});
  while (!text.empty()) {
    if (times-- == 0) return parts.push_back(Value::of(text));
    size_t begin = text.size();
    while (begin > 0) {
      const tokenizer::CodePoint c = tokenizer::decode_before(text.data() + begin);
      if (is_blank(c.value)) break;
      begin -= static_cast<size_t>(c.length);
    }
    parts.push_back(Value::of(text.substr(begin)));
    text = stripped(text.substr(0, begin), {.left = false, .right = true});
  }
}

template <bool FromRight>
bool split(const Value& self, Arguments& call, Value& out) {
  std::string_view text = self.string(), between;
  int64_t times = -1;
  if (!call.integer(1, -1, times) || !call.heap.charge_bytes(8 * size_t{self.size})) return false;
  std::vector<Value> parts;
  if (!call.has(0) || call.bound[0]->is(Kind::kNone)) {
    (FromRight ? rsplit_blanks : split_blanks)(text, times, parts);
  } else {
    if (!call.string(0, {}, between)) return false;
    if (between.empty()) return call.fail("an empty separator");
    while (times-- != 0) {
      const size_t at = FromRight ? find_last(text, between) : find_first(text, between);
      if (at == std::string_view::npos) break;
      const std::string_view behind = text.substr(at + between.size()), before = text.substr(0, at);
      parts.push_back(Value::of(FromRight ? behind : before));
      text = FromRight ? before : behind;
    }
    parts.push_back(Value::of(text));
  }
  if (FromRight) std::reverse(parts.begin(), parts.end());
  return call.heap.list(parts, out);
}

bool splitlines(const Value& self, Arguments& call, Value& out) {
  if (!call.heap.charge_bytes(4 * size_t{self.size})) return false;
  std::vector<Value> lines;
  for (size_t at = 0; at < self.size;) {
    std::string_view whole;
    const std::string_view line = next_line(self.string(), at, &whole);
    lines.push_back(Value::of(call.flag(0, false) ? whole : line));
  }
  return call.heap.list(lines, out);
}

template <bool FromRight>
bool partition(const Value& self, Arguments& call, Value& out) {
  std::string_view between;
  if (!call.string(0, {}, between)) return false;
  if (between.empty()) return call.fail("an empty separator");
  const std::string_view text = self.string();
  if (!call.heap.charge(search_steps(text, between))) return false;
  const size_t at = FromRight ? find_last(text, between) : find_first(text, between);
  const Value none = Value::of(std::string_view());
  Value parts[] = {self, none, none};
  if (at != std::string_view::npos) {
    parts[0] = Value::of(text.substr(0, at));
    parts[1] = Value::of(between);
    parts[2] = Value::of(text.substr(at + between.size()));
  } else if (FromRight) {
    std::swap(parts[0], parts[2]);
  }
  return call.heap.list(parts, out, Kind::kTuple);
}

bool format(const Value& self, Arguments& call, Value& out) {
  return brace_format(call.heap, self.string(), call.positional, call.keywords, out);
}

template <bool Prefix>
bool remove_affix(const Value& self, Arguments& call, Value& out) {
  std::string_view affix, text = self.string();
  if (!call.string(0, {}, affix) || !call.heap.charge_bytes(affix.size())) return false;
  if (Prefix ? text.starts_with(affix) : text.ends_with(affix))
    text = Prefix ? text.substr(affix.size()) : text.substr(0, text.size() - affix.size());
  return give(Value::of(text), out);
}

template <bool (*Holds)(uint32_t)>
bool all_are(const Value& self, Arguments& call, Value& out) {
  if (!call.heap.charge_bytes(4 * size_t{self.size})) return false;
  bool all = self.size > 0;
  for (size_t at = 0; all && at < self.size;) {
    const tokenizer::CodePoint c = tokenizer::decode(self.text + at);
    all = Holds(c.value);
    at += static_cast<size_t>(c.length);
  }
  return give(Value::of(all), out);
}
bool is_letter_or_digit(uint32_t c) { return is_alphabetic(c) || is_decimal(c); }

template <Case Which>
bool has_case(const Value& self, Arguments& call, Value& out) {
  return call.heap.charge_bytes(4 * size_t{self.size}) &&
         give(Value::of(is_in_case(self.string(), Which)), out);
}

enum class Side { kLeft, kRight };
template <Side TextAt>
bool justify(const Value& self, Arguments& call, Value& out) {
  int64_t width = 0;
  std::string_view fill;
  if (!call.integer(0, 0, width) || !call.string(1, " ", fill)) return false;
  if (num_characters(fill) != 1) return call.fail("the fill is one character");
  const auto missing = std::max<int64_t>(width - static_cast<int64_t>(num_characters(self.string())), 0);
  if (!call.heap.charge(static_cast<size_t>(missing)) || !call.heap.room(static_cast<size_t>(missing) * 4))
    return false;
  std::string text, padding;
  for (int64_t i = 0; i < missing; ++i) padding += fill;
  text = TextAt == Side::kLeft ? std::string(self.string()) + padding : padding + std::string(self.string());
  return call.heap.text(text, out);
}

bool zfill(const Value& self, Arguments& call, Value& out) {
  int64_t width = 0;
  if (!call.integer(0, 0, width)) return false;
  std::string_view text = self.string();
  const auto missing =
      static_cast<size_t>(std::max<int64_t>(width - static_cast<int64_t>(num_characters(text)), 0));
  if (!call.heap.room(missing)) return false;
  const size_t sign = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
  return call.heap.text(std::string(text.substr(0, sign)).append(missing, '0').append(text.substr(sign)),
                        out);
}

template <ViewKind Which>
bool view(const Value& self, Arguments& /*call*/, Value& out) {
  return give(Value::view(self, Which), out);
}

bool get(const Value& self, Arguments& call, Value& out) {
  if (!check_hashable(call.heap, *call.bound[0])) return false;
  const Entry* entry = find_entry(call.heap, self.dict_entries(), *call.bound[0]);
  out = entry != nullptr ? entry->value : call.has(1) ? *call.bound[1] : Value::none();
  return !call.heap.failed();
}

/// The value itself, since it cannot change.
bool copy(const Value& self, Arguments& /*call*/, Value& out) { return give(self, out); }

bool list_count(const Value& self, Arguments& call, Value& out) {
  int64_t found = 0;
  for (const Value& item : self.list_items()) {
    bool same = false;
    if (!equal(call.heap, item, *call.bound[0], same)) return false;
    found += same;
  }
  return give(Value::of(found), out);
}

bool list_index(const Value& self, Arguments& call, Value& out) {
  for (uint32_t i = 0; i < self.size; ++i) {
    bool same = false;
    if (!equal(call.heap, self.items[i], *call.bound[0], same)) return false;
    if (same) return give(Value::of(int64_t{i}), out);
  }
  return call.fail("not found");
}

constexpr MethodRule kMethods[] = {
    {Kind::kString, "strip", strip<true, true>, "chars"},
    {Kind::kString, "lstrip", strip<true, false>, "chars"},
    {Kind::kString, "rstrip", strip<false, true>, "chars"},
    {Kind::kString, "split", split<false>, "sep maxsplit"},
    {Kind::kString, "rsplit", split<true>, "sep maxsplit"},
    {Kind::kString, "splitlines", splitlines, "keepends"},
    {Kind::kString, "partition", partition<false>, "sep", 1},
    {Kind::kString, "rpartition", partition<true>, "sep", 1},
    {Kind::kString, "startswith", has_affix<true>, "prefix start end", 1},
    {Kind::kString, "endswith", has_affix<false>, "suffix start end", 1},
    {Kind::kString, "removeprefix", remove_affix<true>, "prefix", 1},
    {Kind::kString, "removesuffix", remove_affix<false>, "suffix", 1},
    {Kind::kString, "upper", change_case<Case::kUpper>},
    {Kind::kString, "lower", change_case<Case::kLower>},
    {Kind::kString, "title", change_case<Case::kTitle>},
    {Kind::kString, "capitalize", change_case<Case::kCapitalize>},
    {Kind::kString, "replace", replace, "old new count", 2},
    {Kind::kString, "find", find<false, false>, "sub start end", 1},
    {Kind::kString, "rfind", find<true, false>, "sub start end", 1},
    {Kind::kString, "index", find<false, true>, "sub start end", 1},
    {Kind::kString, "rindex", find<true, true>, "sub start end", 1},
    {Kind::kString, "count", count, "sub start end", 1},
    {Kind::kString, "join", join, "iterable", 1},
    {Kind::kString, "format", format, "*"},
    {Kind::kString, "isalpha", all_are<is_alphabetic>},
    {Kind::kString, "isdigit", all_are<is_decimal>},
    {Kind::kString, "isdecimal", all_are<is_decimal>},
    {Kind::kString, "isnumeric", all_are<is_decimal>},
    {Kind::kString, "isalnum", all_are<is_letter_or_digit>},
    {Kind::kString, "isspace", all_are<is_blank>},
    {Kind::kString, "isupper", has_case<Case::kUpper>},
    {Kind::kString, "islower", has_case<Case::kLower>},
    {Kind::kString, "ljust", justify<Side::kLeft>, "width fillchar", 1},
    {Kind::kString, "rjust", justify<Side::kRight>, "width fillchar", 1},
    {Kind::kString, "zfill", zfill, "width", 1},
    {Kind::kDict, "keys", view<ViewKind::kKeys>},
    {Kind::kDict, "values", view<ViewKind::kValues>},
    {Kind::kDict, "items", view<ViewKind::kItems>},
    {Kind::kDict, "get", get, "key default", 1},
    {Kind::kDict, "copy", copy},
    {Kind::kDict, "pop", nullptr},
    {Kind::kDict, "popitem", nullptr},
    {Kind::kDict, "clear", nullptr},
    {Kind::kDict, "update", nullptr},
    {Kind::kDict, "setdefault", nullptr},
    {Kind::kList, "count", list_count, "value", 1},
    {Kind::kList, "index", list_index, "value", 1},
    {Kind::kList, "copy", copy},
    {Kind::kList, "append", nullptr},
    {Kind::kList, "extend", nullptr},
    {Kind::kList, "insert", nullptr},
    {Kind::kList, "pop", nullptr},
    {Kind::kList, "remove", nullptr},
    {Kind::kList, "clear", nullptr},
    {Kind::kList, "reverse", nullptr},
    {Kind::kList, "sort", nullptr},
    {Kind::kTuple, "count", list_count, "value", 1},
    {Kind::kTuple, "index", list_index, "value", 1},
};

}  // namespace

const MethodRule* find_method(Kind owner, std::string_view name) {
  if (owner != Kind::kString && owner != Kind::kDict && owner != Kind::kList && owner != Kind::kTuple)
    return nullptr;
  const auto* found = std::find_if(
      std::begin(kMethods), std::end(kMethods),
      [owner, name](const MethodRule& rule) { return rule.owner == owner && rule.name == name; });
  return found == std::end(kMethods) ? nullptr : found;
}

}  // namespace plimsoll::chat
