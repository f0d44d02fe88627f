// Patterns of names, as Python's fnmatch.fnmatchcase reads them.
#pragma once

#include <string_view>

namespace plimsoll {

/// Whether all of `name` matches: * is any text (dots and slashes too), ? any character, [a-c] one of a set,
/// [!a-c] one not of it. A backslash is a backslash, a [ that nothing closes itself. Linear in the name for
/// each star.
bool matches_glob(std::string_view pattern, std::string_view name);

}  // namespace plimsoll
