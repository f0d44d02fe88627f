// The terminal: messages that fit it, a line that rewrites itself. No escape
// sequence is ever written; a line is rewritten by a carriage return and blanks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/text_layout.h"

namespace plimsoll::cli {

/// Columns of the terminal that `fd` leads to, now; the smaller of what it says and COLUMNS, 80 where neither
/// says. 0: no terminal.
int terminal_columns(int fd);
/// Results for people, on stdout: as they are where it is no terminal, else `wrapped` to its width.
void print_text(std::string_view text);
/// Writes a message to stderr as lines of its own, that fit it; an open status line ends first. From any
/// thread.
void print_message(std::string_view text);

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

}  // namespace plimsoll::cli
