// What a save tells of itself.
#pragma once

#include <cstdint>
#include <string>

namespace plimsoll::train {

struct SaveReport {
  int64_t step = 0;
  std::string path;
  double seconds = 0;         ///< from the start to the folder's name
  double waited_seconds = 0;  ///< of these, training stood still
};

}  // namespace plimsoll::train
