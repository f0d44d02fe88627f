// Options of the simulated device.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/units.h"
#include "ir/graph.h"
#include "runtime/communicator.h"

namespace plimsoll::discrete {

/// The n-th piece of work of a queue, from 1 on, fails instead of being done; a copy fails half-way.
struct Fault {
  ir::Queue queue = ir::Queue::kCompute;
  uint64_t number = 0;
  bool flips = false;  ///< it is done, and nobody is told that a bit of a kernel's first result is wrong
};
/// Reads "copy_in:17", "compute:17:flip"; null or empty: none. Errors: kInvalidArgument.
Result<std::optional<Fault>> parse_fault(const char* text);

struct DiscreteOptions {
  int num_threads = 1;  ///< that compute; each queue has a thread of its own beside them, the caller's none
  Bytes memory = {};    ///< of the device; 0: as much as the process is given
  double copy_bandwidth = 0;  ///< between the device and elsewhere, bytes a second and queue; 0: memory speed
  /// Delays, splits and starves what is queued, a function of (seed, queue, number of the work); nothing: all
  /// runs as soon as it may.
  std::optional<uint64_t> seed = {};
  /// Device memory faults when the host touches it.
  bool check = false;
  /// The CPU with queues: device memory is the process's, which the host reaches, the target is the CPU's.
  bool shares_host = false;
  std::string disk_folder = {};  ///< of memory on the disk; empty: there is none
  std::optional<Fault> fault = {};
  runtime::Communicator* communicator =
      nullptr;  ///< of ops between ranks; outlives the device; null: it is alone
};

}  // namespace plimsoll::discrete
