// Each follows the description in Jinja2's template designer documentation; tojson is transformers' own.
#include "data/chat/text_filters.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <vector>

#include "data/chat/object.h"
#include "data/chat/print.h"
#include "data/chat/text.h"
#include "data/tokenizer/unicode.h"

namespace plimsoll::chat {
namespace {

bool in_case_of(const Value& value, Arguments& call, Case which, Value& out) {
  Value text;
  return text_of(call.heap, value, text) && call.heap.charge_bytes(4 * size_t{text.size}) &&
         call.heap.text(in_case(text.string(), which), out);
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
  const auto parts_words = [](const tokenizer::CodePoint& c) {
    return is_blank(c.value) || (c.value < 0x80 && std::string_view("-({[<").find(
                                                       static_cast<char>(c.value)) != std::string_view::npos);
  };
  for (size_t at = 0; at < all.size();) {
    size_t end = at;
    const tokenizer::CodePoint first = tokenizer::decode(all.data() + at);
    const bool between = parts_words(first);
    while (end < all.size()) {
      const tokenizer::CodePoint c = tokenizer::decode(all.data() + end);
      if (parts_words(c) != between) break;
      end += static_cast<size_t>(c.length);
    }
    const std::string_view word = all.substr(at, end - at);
    made += in_case(word.substr(0, static_cast<size_t>(first.length)), Case::kUpper);
    made += in_case(word.substr(static_cast<size_t>(first.length)), Case::kLower);
    at = end;
  }
  return call.heap.text(made, out);
}

bool trim(const Value& value, Arguments& call, Value& out) {
  Value text;
  std::string_view characters;
  if (!text_of(call.heap, value, text)) return false;
  const bool has_characters = call.has(0) && !call.bound[0]->is(Kind::kNone);
  if (has_characters && !call.string(0, {}, characters)) return false;
  if (!call.heap.charge(has_characters ? strip_steps(text.string(), characters) : text.size / 16))
    return false;
  out = Value::of(has_characters ? stripped(text.string(), characters) : stripped(text.string()));
  return true;
}

bool string(const Value& value, Arguments& call, Value& out) { return text_of(call.heap, value, out); }

bool escape(const Value& value, Arguments& call, Value& out) {
  Value text;
  if (!text_of(call.heap, value, text)) return false;
  std::string made;
  for (const char c : text.string()) {
    constexpr std::string_view kFrom = "&<>'\"";
    constexpr std::string_view kTo[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    const size_t at = kFrom.find(c);
    if (at == std::string_view::npos)
      made.push_back(c);
    else
      made += kTo[at];
  }
  return call.heap.text(made, out);
}

bool replace(const Value& value, Arguments& call, Value& out) {
  Value text, old, with;
  int64_t count = -1;
  if (call.has(2) && !call.bound[2]->is(Kind::kNone) && !call.integer(2, -1, count)) return false;
  return text_of(call.heap, value, text) && text_of(call.heap, *call.bound[0], old) &&
         text_of(call.heap, *call.bound[1], with) &&
         replaced(call.heap, text.string(), old.string(), with.string(), count, out);
}

/// Lines but the first (with `first` also that) moved in; empty ones only with `blank`.
bool indent(const Value& value, Arguments& call, Value& out) {
  if (!value.is_string()) return call.fail(fmt::format("expected a text, not {}", type_name(value)));
  std::string by = "    ";
  if (call.has(0) && call.bound[0]->is_string()) {
    by = call.bound[0]->string();
  } else {
    int64_t width = 4;
    if (!call.integer(0, 4, width)) return false;
    if (!call.heap.room(static_cast<size_t>(std::max<int64_t>(width, 0)))) return false;
    by.assign(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
  }
  const bool first = call.flag(1, false), blank = call.flag(2, false);
  const std::string text = std::string(value.string()) + "\n";
  std::string made;
  for (size_t at = 0, number = 0; at < text.size(); ++number) {
    const std::string_view line = next_line(text, at);
    if (number > 0) made.push_back('\n');
    if (number == 0 ? first : blank || !line.empty()) made += by;
    made += line;
    if (!call.heap.charge(1) || !call.heap.room(made.size())) return false;
  }
  return call.heap.text(made, out);
}

bool tojson(const Value& value, Arguments& call, Value& out) {
  JsonStyle style{.ascii_only = call.flag(0, false), .sorted_keys = call.flag(3, false)};
  std::string indent;
  if (call.has(1) && !call.bound[1]->is(Kind::kNone)) {
    style.has_indent = true;
    style.item_separator = ",";
    if (call.bound[1]->is_string()) {
      indent = call.bound[1]->string();
    } else {
      int64_t width = 0;
      if (!call.integer(1, 0, width)) return false;
      if (width > 1000) return call.fail("an indent beyond 1000");
      indent.assign(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
    }
    style.indent = indent;
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

bool format(const Value& value, Arguments& call, Value& out) {
  Value text, values;
  if (!text_of(call.heap, value, text)) return false;
  if (call.keywords.empty()) {
    if (!call.heap.list(call.positional, values, Kind::kTuple)) return false;
  } else {
    if (!call.positional.empty()) return call.fail("takes positional or named arguments, not both");
    auto* entries = call.heap.array<Entry>(call.keywords.size());
    if (entries == nullptr) return false;
    for (size_t i = 0; i < call.keywords.size(); ++i)
      entries[i] = {Value::of(call.keywords[i].name), call.keywords[i].value};
    values = Value::dict(entries, call.keywords.size());
  }
  return percent_format(call.heap, text.string(), values, out);
}

bool center(const Value& value, Arguments& call, Value& out) {
  Value text;
  int64_t width = 80;
  if (!text_of(call.heap, value, text) || !call.integer(0, 80, width)) return false;
  const auto length = static_cast<int64_t>(num_characters(text.string()));
  const auto missing = static_cast<size_t>(std::max<int64_t>(width - length, 0));
  if (!call.heap.room(missing)) return false;
  // str.center puts the odd blank left where the width is odd.
  const size_t left = missing / 2 + (missing & static_cast<size_t>(width) & 1);
  return call.heap.text(std::string(left, ' ').append(text.string()).append(missing - left, ' '), out);
}

bool truncate(const Value& value, Arguments& call, Value& out) {
  int64_t length = 255, leeway = 5;
  std::string_view end;
  if (!value.is_string()) return call.fail(fmt::format("expected a text, not {}", type_name(value)));
  if (!call.integer(0, 255, length) || !call.string(2, "...", end) || !call.integer(3, 5, leeway))
    return false;
  if (!call.heap.charge_bytes(size_t{value.size} + end.size())) return false;
  const auto kept = length - static_cast<int64_t>(num_characters(end));
  if (kept < 0 || leeway < 0) return call.fail("a length below that of the end, or a negative leeway");
  if (static_cast<int64_t>(num_characters(value.string())) - leeway <= length) {
    out = value;
    return true;
  }
  std::string_view text = characters(value.string(), 0, static_cast<size_t>(kept));
  if (!call.flag(1, false)) text = text.substr(0, std::min(text.rfind(' '), text.size()));
  return call.heap.concat(text, end, out);
}

/// Python's int(text): blanks around, a sign, digits with single underscores.
bool parse_integer(std::string_view text, int base, int64_t& out) {
  text = stripped(text);
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  if (base == 16 && (text.starts_with("0x") || text.starts_with("0X"))) text.remove_prefix(2);
  std::string digits(is_negative ? "-" : "");
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '_' && i > 0 && i + 1 < text.size() && text[i - 1] != '_') continue;
    if (text[i] == '_' || text[i] == '-' || text[i] == '+') return false;
    digits.push_back(text[i]);
  }
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), out, base);
  return read.ec == std::errc() && read.ptr == digits.data() + digits.size() && !text.empty();
}

bool parse_float(std::string_view text, double& out) {
  text = stripped(text);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  if (text.find_first_of("xX(") != std::string_view::npos || text.starts_with("-+")) return false;
  std::string digits;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto is_digit = [&text](size_t at) {
      return at < text.size() && text[at] >= '0' && text[at] <= '9';
    };
    if (text[i] == '_' && i > 0 && is_digit(i - 1) && is_digit(i + 1)) continue;
    digits.push_back(text[i]);
  }
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), out);
  if (read.ec == std::errc::result_out_of_range)
    out = digits.find("e-") != std::string::npos || digits.find("E-") != std::string::npos ? 0.0 : HUGE_VAL;
  return read.ptr == digits.data() + digits.size() && !text.empty();
}

bool truncated(Arguments& call, double number, Value& out) {
  if (!(std::fabs(number) < 9.2e18)) return call.fail("an integer beyond 64 bits");
  out = Value::of(static_cast<int64_t>(number));
  return true;
}

bool to_int(const Value& value, Arguments& call, Value& out) {
  int64_t base = 10, integer = 0;
  double number = 0;
  if (!call.integer(1, 10, base)) return false;
  if (value.is_string() && !call.heap.charge_bytes(4 * size_t{value.size})) return false;
  if (base < 2 || base > 36) return call.fail("a base that is not from 2 to 36");
  if (value.is_undefined()) return call.heap.fail(undefined_message(value));
  if (value.is_integral()) return out = Value::of(value.as_integer()), true;
  if (value.is(Kind::kFloat) && !std::isnan(value.number)) return truncated(call, value.number, out);
  if (value.is_string() && parse_integer(value.string(), static_cast<int>(base), integer))
    return out = Value::of(integer), true;
  if (value.is_string() && parse_float(value.string(), number) && std::isfinite(number))
    return truncated(call, number, out);
  out = call.has(0) ? *call.bound[0] : Value::of(int64_t{0});
  return true;
}

bool to_float(const Value& value, Arguments& call, Value& out) {
  double number = 0;
  if (value.is_string() && !call.heap.charge_bytes(4 * size_t{value.size})) return false;
  if (value.is_undefined()) return call.heap.fail(undefined_message(value));
  if (value.is_number())
    out = Value::of(value.as_number());
  else if (value.is_string() && parse_float(value.string(), number))
    out = Value::of(number);
  else
    out = call.has(0) ? *call.bound[0] : Value::of(0.0);
  return true;
}

bool round(const Value& value, Arguments& call, Value& out) {
  int64_t precision = 0;
  std::string_view method;
  if (!call.integer(0, 0, precision) || !call.string(1, "common", method)) return false;
  if (!value.is_number())
    return value.is_undefined() ? call.heap.fail(undefined_message(value))
                                : call.fail(fmt::format("expected a number, not {}", type_name(value)));
  if (precision < -300 || precision > 300) return call.fail("a precision beyond 300");
  if (method != "common" && method != "ceil" && method != "floor")
    return call.fail("the method is common, ceil or floor");
  const double number = value.as_number();
  if (method != "common") {
    const double scale = std::pow(10.0, static_cast<double>(precision));
    const double scaled = method == "ceil" ? std::ceil(number * scale) : std::floor(number * scale);
    if (!std::isfinite(scaled)) return call.fail("a number that cannot be rounded");
    out = Value::of(scaled / scale);
    return true;
  }
  if (value.is_integral()) {
    if (precision >= 0) return out = Value::of(value.as_integer()), true;
    const double scale = std::pow(10.0, static_cast<double>(-precision));
    return truncated(call, std::nearbyint(number / scale) * scale, out);
  }
  if (!std::isfinite(number)) return out = value, true;
  if (precision < 0) {
    const double scale = std::pow(10.0, static_cast<double>(-precision));
    out = Value::of(std::nearbyint(number / scale) * scale);
    return true;
  }
  // Printing rounds the exact value, halves to even, as Python's round does.
  double rounded = number;
  const std::string text = fmt::format("{:.{}f}", number, precision);
  std::from_chars(text.data(), text.data() + text.size(), rounded);
  out = Value::of(rounded);
  return true;
}

bool absolute(const Value& value, Arguments& call, Value& out) {
  if (!value.is_number()) return call.fail(fmt::format("expected a number, not {}", type_name(value)));
  if (value.is(Kind::kFloat)) return out = Value::of(std::fabs(value.number)), true;
  if (value.as_integer() >= 0) return out = Value::of(value.as_integer()), true;
  return negative(call.heap, value, out);
}

constexpr FilterRule kRules[] = {
    {"abs", absolute},
    {"capitalize", capitalize},
    {"center", center, "width"},
    {"e", escape},
    {"escape", escape},
    {"float", to_float, "default"},
    {"format", format, "*"},
    {"indent", indent, "width first blank"},
    {"int", to_int, "default base"},
    {"lower", lower},
    {"replace", replace, "old new count", 2},
    {"round", round, "precision method"},
    {"safe", string},
    {"string", string},
    {"title", title},
    {"tojson", tojson, "ensure_ascii indent separators sort_keys"},
    {"trim", trim, "chars"},
    {"truncate", truncate, "length killwords end leeway"},
    {"upper", upper},
};

}  // namespace

std::span<const FilterRule> text_filters() { return kRules; }

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

}  // namespace plimsoll::chat
