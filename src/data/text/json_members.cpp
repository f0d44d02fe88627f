#include "data/text/json_members.h"

namespace plimsoll::text {

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

bool scan_object(JsonScanner& scanner, Members& members) {
  if (!scanner.expect('{')) return false;
  if (scanner.take('}')) return true;
  do {
    std::string_view key;
    Member member;
    if (!scanner.string(key) || !scanner.expect(':') || !scanner.value(member.value)) return false;
    append_unescaped(key, member.key);
    members.push_back(std::move(member));
  } while (scanner.take(','));
  return scanner.expect('}');
}

Members members_of(std::string_view object) {
  JsonScanner scanner(object);
  Members members;
  scan_object(scanner, members);
  return members;
}
std::vector<std::string_view> items_of(std::string_view list) {
  JsonScanner scanner(list);
  std::vector<std::string_view> items;
  scanner.expect('[');
  if (scanner.take(']')) return items;
  do {
    scanner.value(items.emplace_back());
  } while (scanner.take(','));
  return items;
}

}  // namespace plimsoll::text
