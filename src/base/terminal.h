// Terminal properties and display widths: its width, messages that fit it, a line that rewrites itself. No
// escape sequence is ever written; a line is rewritten by a carriage return and blanks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plimsoll {

/// Columns of the terminal that `fd` leads to, now; the smaller of what it says and COLUMNS, 80 where neither
/// says. 0: no terminal.
int terminal_columns(int fd);
/// Columns that a text in UTF-8 takes; characters from U+1000 on count as two, but for
/// U+2000 to U+2FFF (punctuation, arrows, boxes).
int columns_of(std::string_view text);
/// `text` in lines of at most `columns`. A line that is longer breaks at blanks; what follows stands below
/// its last field (behind two blanks or more) where that leaves room to read, else columns give way: fields
/// two blanks apart, further lines indented by two more than the first. A word that is longer stays whole, so
/// that it can be copied. 0 columns: as it is.
std::string wrapped(std::string_view text, int columns);
/// Results for people, on stdout: as they are where it is no terminal, else `wrapped` to its width.
void print_text(std::string_view text);
/// Text of a model or a file as it may go to a terminal: controls but for line feeds and tabs spelled out
/// ("\x1b"), those of two bytes (U+0080 to U+009F) too. Everything else as it is.
std::string harmless(std::string_view text);
/// Writes a message to stderr as lines of its own, that fit it; an open status line ends first. From any
/// thread.
void print_message(std::string_view text);

/// A part of a status line; parts of a higher rank give way first where the line is too wide.
struct StatusPart {
  std::string text;
  int rank = 0;
};
/// The parts two blanks apart, as many as fit into `columns`; what is left is cut. 0 columns: all.
std::string fitted(const std::vector<StatusPart>& parts, int columns);

class StatusLine;

/// When how far something has come is worth a line, and how long the rest will take. Begins as it is made.
class ProgressClock {
 public:
  ProgressClock();
  /// Whether to show it now: ten times a second where the line rewrites itself, elsewhere once in ten
  /// seconds. Counts as shown then.
  bool is_due(const StatusLine& line);
  [[nodiscard]] double passed_seconds() const;
  /// "12s left", from how long `fraction` of the whole has taken.
  [[nodiscard]] std::string left(double fraction) const;

 private:
  double start_seconds_, shown_seconds_;
};

/// A line on stderr that rewrites itself on a terminal, at most 30 times a second and never wider than it is;
/// elsewhere, and on a terminal that cannot (TERM=dumb), lines one after the other.
class StatusLine {
 public:
  StatusLine();
  ~StatusLine() { finish(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  [[nodiscard]] bool is_terminal() const { return terminal_; }
  /// Whether `show` replaces what it showed before.
  [[nodiscard]] bool rewrites() const { return rewrites_; }
  void show(const std::vector<StatusPart>& parts);
  /// Leaves what was shown last and ends the line; messages may follow.
  void finish();
  /// The same, and takes the line away.
  void clear();

 private:
  void draw(const std::string& line);
  void close();

  bool terminal_, rewrites_;
  bool open_ = false;
  int shown_columns_ = 0;  ///< of the open line
  double drawn_seconds_ = -1;
  std::vector<StatusPart> waiting_;  ///< shown too soon after the last; drawn at the end
};

}  // namespace plimsoll
