#include "base/glob.h"

#include <algorithm>

namespace plimsoll {
namespace {

/// One element of a pattern: a character, any, or a set.
struct Element {
  size_t length;  ///< of its text
  bool matches;
};

/// Whether `c` is in the set between the brackets; "!…" is not.
bool in_set(std::string_view set, char c) {
  const bool negated = set.starts_with('!');
  if (negated) set.remove_prefix(1);
  bool found = false;
  while (!set.empty()) {
    const bool range = set.size() > 2 && set[1] == '-';
    found = found || (range ? set[0] <= c && c <= set[2] : set[0] == c);
    set.remove_prefix(range ? 3 : 1);
  }
  return found != negated;
}

Element element_at(std::string_view pattern, char c) {
  if (pattern.front() == '?') return {1, true};
  if (pattern.front() == '[') {
    // A ] that comes first is one of the set.
    const size_t first = pattern.substr(1).starts_with('!') ? 2 : 1;
    const size_t end = pattern.find(']', first + 1);
    if (end != std::string_view::npos) return {end + 1, in_set(pattern.substr(1, end - 1), c)};
  }
  return {1, pattern.front() == c};
}

}  // namespace

bool matches_glob(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0;
  size_t star = std::string_view::npos, resumed = 0;  // the last star, and where what it takes ends
  while (n < name.size() || p < pattern.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resumed = n;
      continue;
    }
    if (p < pattern.size() && n < name.size()) {
      if (const Element e = element_at(pattern.substr(p), name[n]); e.matches) {
        p += e.length;
        ++n;
        continue;
      }
    }
    if (star == std::string_view::npos || resumed == name.size()) return false;
    p = star + 1;
    n = ++resumed;
  }
  return true;
}

}  // namespace plimsoll
