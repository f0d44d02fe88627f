#include "corpora/json_members.h"

#include <algorithm>

namespace plimsoll::corpora {

std::string_view find(const Members& members, std::string_view key) {
  for (const Member& member : members)
    if (member.key == key) return member.value == "null" ? std::string_view() : member.value;
  return {};
}

std::string_view type_name(std::string_view value) {
  switch (value.empty() ? 'n' : value[0]) {
    case '"':
      return "a string";
    case '[':
      return "a list";
    case '{':
      return "an object";
    case 't':
    case 'f':
      return "a boolean";
    case 'n':
      return "null";
    default:
      return "a number";
  }
}

std::string unescaped(std::string_view string) {
  std::string out;
  append_unescaped(string, out);
  return out;
}

namespace {

/// Calls `take(key's text with quotes, value)` for each member of the object that comes next until it says
/// false; true then too.
template <typename Take>
bool for_each_member(JsonScanner& scanner, const Take& take) {
  if (!scanner.expect('{')) return false;
  if (scanner.take('}')) return true;
  do {
    std::string_view key, value;
    if (!scanner.string(key) || !scanner.expect(':') || !scanner.value(value)) return false;
    if (!take(key, value)) return true;
  } while (scanner.take(','));
  return scanner.expect('}');
}

void keep(std::string_view key, std::string_view value, Members& members) {
  const auto same = [key](const Member& member) { return member.key == key; };
  const auto first = std::find_if(members.begin(), members.end(), same);
  const auto last = first == members.end() ? first : std::find_if(first + 1, members.end(), same);
  if (last != members.end()) members.erase(last);
  members.push_back({std::string(key), value});
}

}  // namespace

bool scan_object(JsonScanner& scanner, Keys keys, Members& members) {
  std::string resolved;
  return for_each_member(scanner, [&](std::string_view quoted, std::string_view value) {
    std::string_view key = quoted.substr(1, quoted.size() - 2);
    if (key.find('\\') != key.npos) {
      resolved.clear();
      append_unescaped(quoted, resolved);
      key = resolved;
    }
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) keep(key, value, members);
    return true;
  });
}

Members members_of(std::string_view object, Keys keys) {
  JsonScanner scanner(object);
  Members members;
  scan_object(scanner, keys, members);
  return members;
}

std::vector<std::string> first_keys(std::string_view object, size_t most) {
  JsonScanner scanner(object);
  std::vector<std::string> keys;
  for_each_member(scanner, [&](std::string_view key, std::string_view) {
    if (keys.size() == most) return false;
    keys.push_back(unescaped(key));
    return true;
  });
  return keys;
}

bool ListItems::next(std::string_view& item) {
  if (!scanner_.take(begun_ ? ',' : '[')) return false;
  if (!begun_ && scanner_.take(']')) return false;
  begun_ = true;
  return scanner_.value(item);
}

}  // namespace plimsoll::corpora
