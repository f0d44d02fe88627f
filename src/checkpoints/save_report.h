// The report of one save.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace plimsoll::checkpoints {

struct SaveReport {
  int64_t step = 0;
  std::string path;
  double seconds = 0;         ///< from the start to the folder's name
  double waited_seconds = 0;  ///< of these, training stood still
  /// Of final/: why the record of its run (final_record.h) could not be written, where it could not.
  std::optional<Error> unrecorded = {};
};

}  // namespace plimsoll::checkpoints
