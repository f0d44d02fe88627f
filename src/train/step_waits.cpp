#include "train/step_waits.h"

#include <fstream>
#include <string>

namespace plimsoll::train {

StepWaits step_waits() {
  StepWaits waits;
  // Nanoseconds that it ran, nanoseconds that it waited for a CPU, slices.
  double ran = 0, waited = 0;
  if (std::ifstream("/proc/thread-self/schedstat") >> ran >> waited) waits.taken_seconds = 1e-9 * waited;
  std::ifstream io("/proc/self/io");
  std::string key;
  for (int64_t bytes = 0; io >> key >> bytes;)
    if (key == "read_bytes:") waits.read_bytes = bytes;
  return waits;
}

}  // namespace plimsoll::train
