// The methods of str and dict.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "templates/object.h"
#include "templates/print.h"
#include "templates/rules.h"
#include "templates/text.h"
#include "templates/text_filters.h"
#include "tokenizers/unicode.h"

namespace plimsoll::templates {
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
  std::string text;
  if (!call.heap.charge_bytes(4 * size_t{self.size})) return false;
  return append_in_case(self.string(), Which, text)
             ? call.heap.text(text, out)
             : call.fail("changes the case of no letter that becomes several (ß, ŉ, İ, Σ)");
}

template <bool Starts>
bool has_affix(const Value& self, Arguments& call, Value& out) {
  const Value& given = *call.bound[0];
  const std::span<const Value> affixes = given.is(Kind::kTuple) ? given.list_items() : std::span(&given, 1);
  bool found = false;
  for (const Value& affix : affixes) {
    if (!affix.is_string()) return call.fail(fmt::format("expected a text, not {}", type_name(affix)));
    if (!call.heap.charge(1 + std::min(affix.size, self.size) / 16)) return false;
    found = found ||
            (Starts ? self.string().starts_with(affix.string()) : self.string().ends_with(affix.string()));
  }
  return give(Value::of(found), out);
}

bool replace(const Value& self, Arguments& call, Value& out) {
  std::string_view old, with;
  int64_t times = -1;
  return call.string(0, {}, old) && call.string(1, {}, with) && call.integer(2, -1, times) &&
         replaced(call.heap, self.string(), old, with, times, out);
}

/// At blanks; the rest behind the last cut keeps its own.
void split_blanks(std::string_view text, int64_t times, std::vector<Value>& parts) {
  text = stripped(text, {.left = true, .right = false});
  while (!text.empty()) {
    if (times-- == 0) return parts.push_back(Value::of(text));
    size_t end = 0;
    while (end < text.size()) {
      const tokenizers::CodePoint c = tokenizers::decode(text.data() + end);
      if (is_blank(c.value)) break;
      end += static_cast<size_t>(c.length);
    }
    parts.push_back(Value::of(text.substr(0, end)));
    text = stripped(text.substr(end), {.left = true, .right = false});
  }
}

bool split(const Value& self, Arguments& call, Value& out) {
  std::string_view text = self.string(), between;
  int64_t times = -1;
  if (!call.integer(1, -1, times) || !call.heap.charge_bytes(8 * size_t{self.size})) return false;
  std::vector<Value> parts;
  if (!call.has(0) || call.bound[0]->is(Kind::kNone)) {
    split_blanks(text, times, parts);
    return call.heap.list(parts, out);
  }
  if (!call.string(0, {}, between)) return false;
  if (between.empty()) return call.fail("an empty separator");
  while (times-- != 0) {
    const size_t at = find_first(text, between);
    if (at == std::string_view::npos) break;
    parts.push_back(Value::of(text.substr(0, at)));
    text.remove_prefix(at + between.size());
  }
  parts.push_back(Value::of(text));
  return call.heap.list(parts, out);
}

template <ViewKind Which>
bool view(const Value& self, Arguments& /*call*/, Value& out) {
  return give(Value::view(self, Which), out);
}

bool get(const Value& self, Arguments& call, Value& out) {
  if (!check_key(call.heap, *call.bound[0])) return false;
  const Entry* entry = find_entry(call.heap, self.dict_entries(), *call.bound[0]);
  out = entry != nullptr ? entry->value : call.has(1) ? *call.bound[1] : Value::none();
  return !call.heap.failed();
}

constexpr MethodRule kMethods[] = {
    {Kind::kString, "strip", strip<true, true>, "chars"},
    {Kind::kString, "lstrip", strip<true, false>, "chars"},
    {Kind::kString, "rstrip", strip<false, true>, "chars"},
    {Kind::kString, "split", split, "sep maxsplit"},
    {Kind::kString, "startswith", has_affix<true>, "prefix", 1},
    {Kind::kString, "endswith", has_affix<false>, "suffix", 1},
    {Kind::kString, "upper", change_case<Case::kUpper>},
    {Kind::kString, "lower", change_case<Case::kLower>},
    {Kind::kString, "title", change_case<Case::kTitle>},
    {Kind::kString, "capitalize", change_case<Case::kCapitalize>},
    {Kind::kString, "replace", replace, "old new count", 2},
    {Kind::kDict, "keys", view<ViewKind::kKeys>},
    {Kind::kDict, "values", view<ViewKind::kValues>},
    {Kind::kDict, "items", view<ViewKind::kItems>},
    {Kind::kDict, "get", get, "key default", 1},
};

}  // namespace

const MethodRule* find_method(Kind owner, std::string_view name) {
  if (owner != Kind::kString && owner != Kind::kDict) return nullptr;
  const auto* found = std::find_if(
      std::begin(kMethods), std::end(kMethods),
      [owner, name](const MethodRule& rule) { return rule.owner == owner && rule.name == name; });
  return found == std::end(kMethods) ? nullptr : found;
}

}  // namespace plimsoll::templates
