#include "corpora/example_line.h"

#include <fmt/format.h>

#include <algorithm>

#include "corpora/json_scan.h"
#include "corpora/reasons.h"

namespace plimsoll::corpora {

BadExample ExampleLine::bad(std::string_view reason, std::string what) const {
  return {reason, {ErrorCode::kBadData, std::move(what), place_of(example_.file, example_.line), kSkipHint}};
}

std::optional<BadExample> ExampleLine::check_once(std::string_view key) const {
  const auto same = [key](const Member& member) { return member.key == key; };
  if (std::count_if(members.begin(), members.end(), same) < 2) return std::nullopt;
  return bad(reason::kDuplicateKey, fmt::format("the line has \"{}\" twice", key));
}

std::optional<BadExample> ExampleLine::string_into(std::string_view key, std::string& out) const {
  const std::string_view value = get(key);
  if (value.empty()) return bad(reason::kMissingField, fmt::format("the line has no \"{}\"", key));
  if (!is_string(value))
    return bad(reason::kWrongType, fmt::format("\"{}\" is {}, expected a string", key, type_name(value)));
  append_unescaped(value, out);
  return std::nullopt;
}

}  // namespace plimsoll::corpora
