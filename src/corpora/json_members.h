// The members of a JSON object and the elements of a list, as the texts of their values: one level at a time.
// Of an object only members that are asked for are kept, of a list one element: a line of millions of them
// takes no more memory than another.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "corpora/json_scan.h"

namespace plimsoll::corpora {

/// A member of an object; its key with escapes resolved, its value's text.
struct Member {
  std::string key;
  std::string_view value;
};
using Members = std::vector<Member>;
using Keys = std::span<const std::string_view>;

/// Passes over the object that comes next and appends the members of these keys, in order; of a key that
/// stands more than twice the first and the last. False with the scanner's error where it is no JSON.
bool scan_object(JsonScanner& scanner, Keys keys, Members& members);
/// The same of text that was scanned before.
Members members_of(std::string_view object, Keys keys);
/// The keys of the first members, `most` of them.
std::vector<std::string> first_keys(std::string_view object, size_t most);

/// The elements of a list that was scanned before, one after the other.
class ListItems {
 public:
  explicit ListItems(std::string_view list) : scanner_(list) {}
  /// False at the end.
  bool next(std::string_view& item);

 private:
  JsonScanner scanner_;
  bool begun_ = false;
};

/// A member's value; empty where there is none or it is null.
std::string_view find(const Members& members, std::string_view key);

inline bool is_string(std::string_view value) { return !value.empty() && value[0] == '"'; }
inline bool is_list(std::string_view value) { return !value.empty() && value[0] == '['; }
inline bool is_object(std::string_view value) { return !value.empty() && value[0] == '{'; }
/// "a string", "a list", …
std::string_view type_name(std::string_view value);
/// What a string means.
std::string unescaped(std::string_view string);

}  // namespace plimsoll::corpora
