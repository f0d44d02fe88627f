// Unicode's normalization forms and lower case, as the `tokenizers` package has them: with Unicode 9's tables
// for the forms, so characters that are younger pass through untouched, and Unicode 17's for lower case.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace plimsoll::tokenizers {

enum class UnicodeForm { kNfc, kNfd, kNfkc, kNfkd };

/// Writes the form of `text` to `out` and returns true, or false where the text is already in that form. A
/// false "true" may happen; `out` is right then too.
bool to_unicode_form(UnicodeForm form, std::string_view text, std::string& out);
/// Writes what NFD makes of one character and returns how many code points that are.
inline constexpr size_t kMostCanonicalParts = 4;
size_t canonical_parts(uint32_t code_point, uint32_t (&parts)[kMostCanonicalParts]);
/// Appends the lower case of a code point: one code point, or two for U+0130.
void append_lowercase(uint32_t code_point, std::string& out);

}  // namespace plimsoll::tokenizers
