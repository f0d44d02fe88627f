// Both languages come down to one specification: fill, alignment, sign, width, precision, type.
#include "data/chat/format.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "data/chat/object.h"
#include "data/chat/print.h"
#include "data/chat/text.h"
#include "data/tokenizer/unicode.h"

namespace plimsoll::chat {
namespace {

constexpr int64_t kMaxWidth = 100'000;

struct Spec {
  std::string fill = " ";
  char align = '\0';
  char sign = '-';
  bool comma = false;
  int64_t width = 0;
  int64_t precision = -1;
  char type = '\0';
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool read_number(std::string_view text, size_t& at, int64_t& out) {
  const auto read = std::from_chars(text.data() + at, text.data() + text.size(), out);
  at = static_cast<size_t>(read.ptr - text.data());
  return read.ec == std::errc() && out <= kMaxWidth;
}

bool parse_spec(std::string_view text, Spec& spec) {
  size_t at = 0;
  const auto is_align = [&text](size_t i) {
    return i < text.size() && std::string_view("<>^=").find(text[i]) != std::string_view::npos;
  };
  if (!text.empty()) {
    const auto length = static_cast<size_t>(tokenizer::decode(text.data()).length);
    if (is_align(length)) {
      spec.fill = text.substr(0, length);
      spec.align = text[length];
      at = length + 1;
    } else if (is_align(0)) {
      spec.align = text[at++];
    }
  }
  if (at < text.size() && std::string_view("+- ").find(text[at]) != std::string_view::npos)
    spec.sign = text[at++];
  if (at < text.size() && text[at] == '0' && spec.align == '\0') {
    spec.fill = "0";
    spec.align = '=';
  }
  if (at < text.size() && is_digit(text[at]) && !read_number(text, at, spec.width)) return false;
  if (at < text.size() && text[at] == ',') spec.comma = ++at > 0;
  if (at < text.size() && text[at] == '.' && (++at == text.size() || !read_number(text, at, spec.precision)))
    return false;
  if (at < text.size()) spec.type = text[at++];
  return at == text.size();
}

void group_thousands(std::string& digits) {
  size_t end = 0;
  while (end < digits.size() && is_digit(digits[end])) ++end;
  for (size_t i = end; i > 3; i -= 3) digits.insert(i - 3, ",");
}

/// The digits without a sign; false for a type that the value has not.
bool digits_of(const Value& value, const Spec& spec, std::string& out) {
  const bool is_float_type = std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos;
  if (spec.type != '\0' && is_float_type) {
    const double number = std::fabs(value.as_number()) * (spec.type == '%' ? 100 : 1);
    const int precision = static_cast<int>(spec.precision < 0 ? 6 : std::min<int64_t>(spec.precision, 340));
    switch (spec.type) {
      case 'e':
        out = fmt::format("{:.{}e}", number, precision);
        break;
      case 'E':
        out = fmt::format("{:.{}E}", number, precision);
        break;
      case 'g':
        out = fmt::format("{:.{}g}", number, precision);
        break;
      case 'G':
        out = fmt::format("{:.{}G}", number, precision);
        break;
      default:
        out = fmt::format("{:.{}f}", number, precision);
    }
    if (spec.type == '%') out.push_back('%');
    return true;
  }
  if (value.is(Kind::kFloat)) {
    if (spec.type != '\0' || spec.precision >= 0) return false;
    append_float(std::fabs(value.number), out);
    return true;
  }
  const int64_t integer = value.as_integer();
  const uint64_t magnitude =
      integer < 0 ? 0 - static_cast<uint64_t>(integer) : static_cast<uint64_t>(integer);
  if (spec.precision >= 0) return false;
  switch (spec.type) {
    case '\0':
    case 'd':
    case 'n':
      out = fmt::format("{}", magnitude);
      return true;
    case 'x':
      out = fmt::format("{:x}", magnitude);
      return true;
    case 'X':
      out = fmt::format("{:X}", magnitude);
      return true;
    case 'o':
      out = fmt::format("{:o}", magnitude);
      return true;
    case 'b':
      out = fmt::format("{:b}", magnitude);
      return true;
    default:
      return false;
  }
}

void pad(std::string_view sign, std::string_view body, const Spec& spec, char default_align,
         std::string& out) {
  const auto length = static_cast<int64_t>(num_characters(body) + sign.size());
  const int64_t missing = std::max<int64_t>(spec.width - length, 0);
  const char align = spec.align != '\0' ? spec.align : default_align;
  const int64_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  const auto fill = [&](int64_t times) {
    for (int64_t i = 0; i < times; ++i) out += spec.fill;
  };
  if (align == '=') out += sign;
  fill(left);
  if (align != '=') out += sign;
  out += body;
  fill(missing - left);
}

bool format_value(Heap& heap, const Value& value, const Spec& spec, std::string& out) {
  if (value.is_number() && !(value.is(Kind::kBool) && spec.type == '\0' && spec.width == 0)) {
    std::string digits;
    if (!digits_of(value, spec, digits))
      return heap.fail(fmt::format("a format that is not supported for {}", type_name(value)));
    if (spec.comma) group_thousands(digits);
    const bool is_negative = value.is(Kind::kFloat) ? std::signbit(value.number) : value.as_integer() < 0;
    const std::string_view sign = is_negative ? "-" : spec.sign == '-' ? "" : spec.sign == '+' ? "+" : " ";
    pad(sign, digits, spec, '>', out);
    return heap.room(out.size());
  }
  if (spec.type != '\0' && spec.type != 's')
    return heap.fail(fmt::format("the format '{}' is for numbers, not {}", spec.type, type_name(value)));
  Value text;
  if (!text_of(heap, value, text)) return false;
  std::string_view shown = text.string();
  if (spec.precision >= 0) shown = characters(shown, 0, static_cast<size_t>(spec.precision));
  pad({}, shown, spec, '<', out);
  return heap.room(out.size());
}

struct Fields {
  std::span<const Value> positional;
  std::span<const Keyword> keywords;
  size_t next = 0;
};

bool find_field(Heap& heap, std::string_view name, Fields& fields, Value& out) {
  if (name.empty() || is_digit(name[0])) {
    size_t index = fields.next++;
    if (!name.empty()) std::from_chars(name.data(), name.data() + name.size(), index);
    if (index >= fields.positional.size()) return heap.fail("format: there are fewer arguments than fields");
    out = fields.positional[index];
    return true;
  }
  for (const Keyword& keyword : fields.keywords)
    if (keyword.name == name) {
      out = keyword.value;
      return true;
    }
  return heap.fail(fmt::format("format: there is no argument '{}'", name));
}

/// "name.attribute[item]".
bool field_value(Heap& heap, std::string_view path, Fields& fields, Value& out) {
  size_t end = std::min(path.find_first_of(".["), path.size());
  if (!find_field(heap, path.substr(0, end), fields, out)) return false;
  while (end < path.size()) {
    const bool is_item = path[end] == '[';
    const size_t begin = end + 1;
    end = is_item ? path.find(']', begin) : std::min(path.find_first_of(".[", begin), path.size());
    if (end == std::string_view::npos) return heap.fail("format: '[' without ']'");
    const std::string_view name = path.substr(begin, end - begin);
    if (is_item) ++end;
    int64_t index = 0;
    const bool is_index =
        is_item &&
        std::from_chars(name.data(), name.data() + name.size(), index).ptr == name.data() + name.size() &&
        !name.empty();
    const Value owner = out;
    if (is_index  ? !item(heap, owner, Value::of(index), out)
        : is_item ? !item(heap, owner, Value::of(name), out)
                  : !attribute(heap, owner, name, out))
      return false;
  }
  return true;
}

bool format_field(Heap& heap, std::string_view field, Fields& fields, std::string& out) {
  const size_t colon = std::min(field.find(':'), field.size());
  std::string_view path = field.substr(0, colon);
  const size_t bang = std::min(path.find('!'), path.size());
  const std::string_view conversion = path.substr(bang);
  path = path.substr(0, bang);
  Value value;
  if (!field_value(heap, path, fields, value)) return false;
  if (conversion == "!r" || conversion == "!s") {
    std::string text;
    if (!(conversion == "!r" ? append_repr(heap, value, text) : append_text(heap, value, text)) ||
        !heap.text(text, value))
      return false;
  } else if (!conversion.empty()) {
    return heap.fail("format: the conversion is neither !r nor !s");
  }
  Spec spec;
  if (colon < field.size() && !parse_spec(field.substr(colon + 1), spec))
    return heap.fail(fmt::format("format: '{}' is not supported", field.substr(0, 60)));
  if (colon >= field.size()) return append_text(heap, value, out);
  return format_value(heap, value, spec, out);
}

/// One "%…" of a text: its flags and type; `at` is behind the '%'.
bool percent_spec(std::string_view text, size_t& at, std::string_view& name, Spec& spec) {
  if (at < text.size() && text[at] == '(') {
    const size_t close = text.find(')', at);
    if (close == std::string_view::npos) return false;
    name = text.substr(at + 1, close - at - 1);
    at = close + 1;
  }
  spec.align = '>';
  for (; at < text.size(); ++at) {
    if (text[at] == '-') {
      spec.align = '<';
    } else if (text[at] == '0') {
      if (spec.align != '<') spec.align = '=';
      spec.fill = "0";
    } else if (text[at] == '+' || text[at] == ' ') {
      spec.sign = text[at];
    } else {
      break;
    }
  }
  if (spec.align != '=') spec.fill = " ";
  if (at < text.size() && is_digit(text[at]) && !read_number(text, at, spec.width)) return false;
  if (at < text.size() && text[at] == '.') {
    spec.precision = 0;
    if (++at < text.size() && is_digit(text[at]) && !read_number(text, at, spec.precision)) return false;
  }
  if (at >= text.size()) return false;
  spec.type = text[at++];
  return true;
}

bool percent_value(Heap& heap, Value value, Spec spec, std::string& out) {
  if (spec.type == 's' || spec.type == 'r') {
    std::string text;
    if (!(spec.type == 'r' ? append_repr(heap, value, text) : append_text(heap, value, text))) return false;
    spec.type = 's';
    if (spec.align == '=') spec.align = '>';
    spec.fill = " ";
    return heap.text(text, value) && format_value(heap, value, spec, out);
  }
  if (std::string_view("diufFeEgGxXo").find(spec.type) == std::string_view::npos)
    return heap.fail(fmt::format("'%{}' is not supported", spec.type));
  if (!value.is_number())
    return heap.fail(fmt::format("'%{}' needs a number, not {}", spec.type, type_name(value)));
  if (spec.type == 'i' || spec.type == 'u') spec.type = 'd';
  if (spec.type == 'd' && value.is(Kind::kFloat)) {
    if (!(std::fabs(value.number) < 9.2e18)) return heap.fail("an integer beyond 64 bits");
    value = Value::of(static_cast<int64_t>(value.number));
  }
  return format_value(heap, value, spec, out);
}

}  // namespace

bool brace_format(Heap& heap, std::string_view text, std::span<const Value> positional,
                  std::span<const Keyword> keywords, Value& out) {
  Fields fields{.positional = positional, .keywords = keywords};
  std::string made;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c != '{' && c != '}') {
      made.push_back(c);
      ++at;
      continue;
    }
    if (at + 1 < text.size() && text[at + 1] == c) {
      made.push_back(c);
      at += 2;
      continue;
    }
    const size_t close = text.find('}', at);
    if (c == '}' || close == std::string_view::npos) return heap.fail("format: a single brace");
    const std::string_view field = text.substr(at + 1, close - at - 1);
    if (field.find('{') != std::string_view::npos)
      return heap.fail("format: fields in fields are not supported");
    if (!format_field(heap, field, fields, made) || !heap.charge(4) || !heap.room(made.size())) return false;
    at = close + 1;
  }
  return heap.text(made, out);
}

bool percent_format(Heap& heap, std::string_view text, const Value& values, Value& out) {
  const std::span<const Value> all =
      values.is(Kind::kTuple) ? values.list_items() : std::span<const Value>(&values, 1);
  std::string made;
  size_t used = 0;
  bool by_name = false;
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '%') {
      made.push_back(text[at++]);
      continue;
    }
    Spec spec;
    std::string_view name;
    if (!percent_spec(text, ++at, name, spec)) return heap.fail("'%' with a format that is not supported");
    if (spec.type == '%') {
      made.push_back('%');
      continue;
    }
    Value value;
    if (name.data() != nullptr) {
      by_name = true;
      const Entry* entry = values.is(Kind::kDict) ? find_entry(values.dict_entries(), name) : nullptr;
      if (entry == nullptr) return heap.fail(fmt::format("'%({})' has no value", name));
      value = entry->value;
    } else if (used < all.size()) {
      value = all[used++];
    } else {
      return heap.fail("'%' with fewer values than places");
    }
    if (!percent_value(heap, value, spec, made) || !heap.charge(4) || !heap.room(made.size())) return false;
  }
  // Whatever can be looked into by a key may be left unused.
  const bool is_lookup =
      values.is(Kind::kDict) || values.is(Kind::kList) || values.is(Kind::kRange) || values.is_undefined();
  if (!by_name && used < all.size() && !is_lookup) return heap.fail("'%' with more values than places");
  return heap.text(made, out);
}

}  // namespace plimsoll::chat
