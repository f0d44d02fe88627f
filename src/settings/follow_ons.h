// Errors that only follow from others: what a mistyped setting leaves unsaid is not wrong as well.
#pragma once

#include <vector>

#include "base/result.h"

namespace plimsoll::settings {

/// The errors of a run file, gathered step by step. A later step's error that speaks of a setting, or of a
/// section, that an earlier step's error speaks of is left out: the user has not said yet what it judges.
class RunErrors {
 public:
  /// Adds the errors of one step.
  void add(std::vector<Error> step);
  [[nodiscard]] bool empty() const { return errors_.empty(); }
  /// The first with the others beside it. There is one.
  Error take();

 private:
  std::vector<Error> errors_;
};

}  // namespace plimsoll::settings
