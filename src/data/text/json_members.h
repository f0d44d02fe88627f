// The members of a JSON object and the elements of a list, as the texts of their values: one level at a time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/text/json_scan.h"

namespace plimsoll::text {

/// A member of an object; its key with escapes resolved, its value's text.
struct Member {
  std::string key;
  std::string_view value;
};
using Members = std::vector<Member>;

/// Appends the members of the object that comes next, in order. False with the scanner's error where it is no
/// JSON.
bool scan_object(JsonScanner& scanner, Members& members);
/// The same of text that was scanned before.
Members members_of(std::string_view object);
std::vector<std::string_view> items_of(std::string_view list);

/// A member's value; empty where there is none or it is null.
std::string_view find(const Members& members, std::string_view key);

inline bool is_string(std::string_view value) { return !value.empty() && value[0] == '"'; }
inline bool is_list(std::string_view value) { return !value.empty() && value[0] == '['; }
inline bool is_object(std::string_view value) { return !value.empty() && value[0] == '{'; }
/// "a string", "a list", …
std::string_view type_name(std::string_view value);
/// What a string means.
std::string unescaped(std::string_view string);

}  // namespace plimsoll::text
