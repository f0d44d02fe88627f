// What the system knows of why a step waited.
#pragma once

#include <cstdint>

namespace plimsoll::train {

/// Since the start; differences over a step mean something. 0 where the kernel does not tell.
struct StepWaits {
  double taken_seconds = 0;  ///< this thread could have run and another had its CPU
  int64_t read_bytes = 0;    ///< from storage, by the process; what a cache held does not count
};
StepWaits step_waits();

}  // namespace plimsoll::train
