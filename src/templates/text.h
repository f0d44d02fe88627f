// Text as Python's str sees it: code points, blanks, case, and how values are printed as text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace plimsoll::templates {

bool is_ascii(std::string_view text);
/// Code points of valid UTF-8.
size_t num_characters(std::string_view text);
/// Where the code point number `index` starts; the text's end where it has fewer.
size_t offset_of(std::string_view text, size_t index);
/// The text of code points [begin, end).
std::string_view characters(std::string_view text, size_t begin, size_t end);

/// What str.isspace says of a code point.
bool is_blank(uint32_t code_point);
/// Bytes of blanks that `text` starts with.
size_t leading_blanks(std::string_view text);
/// str.strip: blanks, or the code points of `characters` where given.
struct StripSides {
  bool left = true;
  bool right = true;
};
std::string_view stripped(std::string_view text, StripSides sides = {});
std::string_view stripped(std::string_view text, std::string_view characters, StripSides sides = {});

enum class Case { kUpper, kLower, kTitle, kCapitalize };
/// str.upper, lower, title, capitalize, appended to `out`. False where a letter becomes several or another
/// one by its place in the word (ß, ŉ, İ, Σ): templates change the case of roles and types, so that is not
/// done here.
bool append_in_case(std::string_view text, Case which, std::string& out);

/// Where `wanted` stands first in the text; npos if nowhere. The time is linear in the text.
size_t find_first(std::string_view text, std::string_view wanted);
/// What that is charged, in steps.
size_t search_steps(std::string_view text, std::string_view wanted);
/// What stripping `characters` off the text is charged, in steps.
size_t strip_steps(std::string_view text, std::string_view characters);

/// The next line of `text` from `at` on as str.splitlines cuts it, without its end; moves `at` behind the
/// end.
std::string_view next_line(std::string_view text, size_t& at);

/// repr() of a float: the shortest text that reads back to it.
void append_float(double value, std::string& out);
/// repr() of a str.
void append_quoted(std::string_view text, std::string& out);
/// json.dumps of a str.
void append_json_string(std::string_view text, bool ascii_only, std::string& out);

}  // namespace plimsoll::templates
