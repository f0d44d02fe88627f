// Text in lines that fit a terminal: columns, lines that break at blanks, parts that give way.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plimsoll {

/// Columns that a text in UTF-8 takes; characters from U+1000 on count as two, but for
/// U+2000 to U+2FFF (punctuation, arrows, boxes).
int columns_of(std::string_view text);
/// `text` in lines of at most `columns`. A line that is longer breaks at blanks; what follows stands below
/// its last field (behind two blanks or more) where that leaves room to read, else columns give way: fields
/// two blanks apart, further lines indented by two more than the first. A word that is longer stays whole, so
/// that it can be copied. 0 columns: as it is.
std::string wrapped(std::string_view text, int columns);
/// Text of a model or a file as it may go to a terminal: controls but for line feeds and tabs spelled out
/// ("\x1b"), those of two bytes (U+0080 to U+009F) too. Everything else as it is.
std::string harmless(std::string_view text);
/// A part of a status line; parts of a higher rank give way first where the line is too wide.
struct StatusPart {
  std::string text;
  int rank = 0;
};
/// The parts two blanks apart, as many as fit into `columns`; what is left is cut. 0 columns: all.
std::string fitted(const std::vector<StatusPart>& parts, int columns);

}  // namespace plimsoll
