// Which sanitizer the tests are built with, if any: it brings its own malloc and shadow memory, and makes
// what is computed ten times slower, so that tests of numbers then take a part of their cases.
#pragma once

namespace plimsoll {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitizer = true;
#else
inline constexpr bool kSanitizer = false;
#endif

/// Of `cases` how many are taken beside a sanitizer: a tenth, and one at least.
constexpr int cases_here(int cases) { return !kSanitizer ? cases : cases < 10 ? 1 : cases / 10; }

}  // namespace plimsoll
