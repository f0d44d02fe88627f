// A progress line on stderr: a line that rewrites itself on a terminal, plain lines in files and pipes.
#pragma once

#include <functional>
#include <string>

#include "base/progress_clock.h"
#include "cli/terminal.h"

namespace plimsoll::cli {

class Progress {
 public:
  Progress() = default;
  ~Progress();  ///< ends an open line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `fraction` of the whole, from 0 to 1, and what else there is to say. The time that is left follows from
  /// how fast the fraction grew. May be called often: a terminal sees ten a second, a file one in ten
  /// seconds.
  void show(double fraction, const std::string& text);
  /// Ends an open line; messages may follow.
  void finish();

 private:
  StatusLine line_;
  ProgressClock clock_;
};

/// What shows how far a long preparation has come; an empty text ends the line.
std::function<void(double fraction, const std::string& text)> shown_by(Progress& progress);

}  // namespace plimsoll::cli
