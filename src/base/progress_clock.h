// The clock of a progress line: how often it is shown, how long the rest takes.
#pragma once

#include <string>

namespace plimsoll {

/// When how far something has come is worth a line, and how long the rest will take. Begins as it is made.
class ProgressClock {
 public:
  ProgressClock();
  /// Whether to show it now: ten times a second where the line is rewritten, elsewhere once in ten
  /// seconds. Counts as shown then.
  bool is_due(bool rewrites);
  [[nodiscard]] double passed_seconds() const;
  /// "12s left", from how long `fraction` of the whole has taken.
  [[nodiscard]] std::string left(double fraction) const;

 private:
  double start_seconds_, shown_seconds_;
};

}  // namespace plimsoll
