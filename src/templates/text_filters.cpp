// Each follows the description in Jinja2's template designer documentation; tojson is transformers' own.
#include "templates/text_filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "templates/object.h"
#include "templates/print.h"
#include "templates/text.h"
#include "tokenizers/unicode.h"

namespace plimsoll::templates {
namespace {

bool append_cased(Arguments& call, std::string_view text, Case which, std::string& out) {
  return append_in_case(text, which, out) ||
         call.fail("changes the case of no letter that becomes several (ß, ŉ, İ, Σ)");
}

bool in_case_of(const Value& value, Arguments& call, Case which, Value& out) {
  Value text;
  std::string made;
  return text_of(call.heap, value, text) && call.heap.charge_bytes(4 * size_t{text.size}) &&
         append_cased(call, text.string(), which, made) && call.heap.text(made, out);
}

bool upper(const Value& value, Arguments& call, Value& out) {
  return in_case_of(value, call, Case::kUpper, out);
}
bool lower(const Value& value, Arguments& call, Value& out) {
  return in_case_of(value, call, Case::kLower, out);
}
bool capitalize(const Value& value, Arguments& call, Value& out) {
  return in_case_of(value, call, Case::kCapitalize, out);
}

/// Unlike str.title, a word begins behind blanks, hyphens and opening brackets alone.
bool title(const Value& value, Arguments& call, Value& out) {
  Value text;
  if (!text_of(call.heap, value, text) || !call.heap.charge_bytes(4 * size_t{text.size})) return false;
  const std::string_view all = text.string();
  std::string made;
  const auto parts_words = [](const tokenizers::CodePoint& c) {
    return is_blank(c.value) || (c.value < 0x80 && std::string_view("-({[<").find(
                                                       static_cast<char>(c.value)) != std::string_view::npos);
  };
  for (size_t at = 0; at < all.size();) {
    size_t end = at;
    const tokenizers::CodePoint first = tokenizers::decode(all.data() + at);
    const bool between = parts_words(first);
    while (end < all.size()) {
      const tokenizers::CodePoint c = tokenizers::decode(all.data() + end);
      if (parts_words(c) != between) break;
      end += static_cast<size_t>(c.length);
    }
    const std::string_view word = all.substr(at, end - at);
    const auto length = static_cast<size_t>(first.length);
    if (!append_cased(call, word.substr(0, length), Case::kUpper, made) ||
        !append_cased(call, word.substr(length), Case::kLower, made))
      return false;
    at = end;
  }
  return call.heap.text(made, out);
}

bool trim(const Value& value, Arguments& call, Value& out) {
  Value text;
  if (!text_of(call.heap, value, text) || !call.heap.charge(text.size / 16)) return false;
  out = Value::of(stripped(text.string()));
  return true;
}

bool string(const Value& value, Arguments& call, Value& out) { return text_of(call.heap, value, out); }

bool replace_in_text(const Value& value, Arguments& call, Value& out) {
  Value text, old, with;
  int64_t count = -1;
  if (call.has(2) && !call.bound[2]->is(Kind::kNone) && !call.integer(2, -1, count)) return false;
  return text_of(call.heap, value, text) && text_of(call.heap, *call.bound[0], old) &&
         text_of(call.heap, *call.bound[1], with) &&
         replaced(call.heap, text.string(), old.string(), with.string(), count, out);
}

/// Lines but the first (with `first` also that) moved in by blanks; empty ones not.
bool indent(const Value& value, Arguments& call, Value& out) {
  int64_t width = 4;
  if (!value.is_string()) return call.fail(fmt::format("expected a text, not {}", type_name(value)));
  if (!call.integer(0, 4, width)) return false;
  const auto blanks = static_cast<size_t>(std::max<int64_t>(width, 0));
  const bool first = call.flag(1, false);
  const std::string text = std::string(value.string()) + "\n";
  std::string made;
  for (size_t at = 0, number = 0; at < text.size(); ++number) {
    const std::string_view line = next_line(text, at);
    if (!call.heap.charge(1) || !call.heap.room(made.size() + blanks)) return false;
    if (number > 0) made.push_back('\n');
    if (number == 0 ? first : !line.empty()) made.append(blanks, ' ');
    made += line;
  }
  return call.heap.text(made, out);
}

bool tojson(const Value& value, Arguments& call, Value& out) {
  JsonStyle style{.ascii_only = call.flag(0, false)};
  if (call.has(1) && !call.bound[1]->is(Kind::kNone)) {
    int64_t width = 0;
    if (!call.integer(1, 0, width)) return false;
    if (width > 1000) return call.fail("an indent beyond 1000");
    style.indent = static_cast<int>(std::max<int64_t>(width, 0));
    style.item_separator = ",";
  }
  if (call.has(2) && !call.bound[2]->is(Kind::kNone)) {
    const Value& both = *call.bound[2];
    if (!both.is_list_like() || both.size != 2 || !both.items[0].is_string() || !both.items[1].is_string())
      return call.fail("separators are two texts");
    style.item_separator = both.items[0].string();
    style.key_separator = both.items[1].string();
  }
  std::string text;
  return append_json(call.heap, value, style, text) && call.heap.text(text, out);
}

/// Python's int(text): blanks around, a sign, decimal digits with single underscores.
bool parse_integer(std::string_view text, int64_t& out) {
  text = stripped(text);
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  std::string digits(is_negative ? "-" : "");
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '_' && i > 0 && i + 1 < text.size() && text[i - 1] != '_') continue;
    if (text[i] < '0' || text[i] > '9') return false;
    digits.push_back(text[i]);
  }
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), out);
  return read.ec == std::errc() && !text.empty();
}

/// Of a text that is no integer Jinja2 makes that of the float, or else 0; here it is an error.
bool to_int(const Value& value, Arguments& call, Value& out) {
  int64_t integer = 0;
  if (value.is_undefined()) return call.heap.fail(undefined_message(value));
  if (value.is_integral()) return out = Value::of(value.as_integer()), true;
  if (!value.is_string())
    return call.fail(fmt::format("expected an integer or its text, not {}", type_name(value)));
  if (!call.heap.charge_bytes(4 * size_t{value.size})) return false;
  if (!parse_integer(value.string(), integer))
    return call.fail(fmt::format("'{}' is no integer", value.string().substr(0, 60)));
  return out = Value::of(integer), true;
}

constexpr FilterRule kTextFilters[] = {
    {"capitalize", capitalize},
    {"indent", indent, "width first"},
    {"int", to_int},
    {"lower", lower},
    {"replace", replace_in_text, "old new count", 2},
    {"safe", string},
    {"string", string},
    {"title", title},
    {"tojson", tojson, "ensure_ascii indent separators"},
    {"trim", trim},
    {"upper", upper},
};

}  // namespace

std::span<const FilterRule> text_filters() { return kTextFilters; }

bool replaced(Heap& heap, std::string_view text, std::string_view old, std::string_view with, int64_t count,
              Value& out) {
  std::string made;
  size_t at = 0;
  if (!heap.charge(search_steps(text, old))) return false;
  while (count != 0) {
    const size_t found = old.empty() ? at : at + std::min(find_first(text.substr(at), old), text.size());
    if (found >= text.size() && !old.empty()) break;
    made.append(text, at, found - at).append(with);
    at = found + old.size();
    --count;
    if (!heap.charge(1) || !heap.room(made.size())) return false;
    if (!old.empty()) continue;
    if (at >= text.size()) return heap.text(made, out);
    const size_t length = offset_of(text.substr(at), 1);
    made.append(text, at, length);
    at += length;
  }
  made.append(text, at);
  return heap.text(made, out);
}

}  // namespace plimsoll::templates
