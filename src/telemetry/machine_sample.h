// Samples the kernel's counters of this process and of the machine, and computes rates from two samples.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "devices/card_monitor.h"

namespace plimsoll::telemetry {

/// Counters since the process or the machine began; -1: the kernel does not say.
struct MachineSample {
  double seconds = 0;          ///< of a clock that only goes forward
  double process_seconds = 0;  ///< of the CPUs, of all threads
  int64_t cpus = 1;            ///< of the machine
  /// Ticks of all CPUs.
  int64_t busy_ticks = 0, idle_ticks = 0, disk_wait_ticks = 0, stolen_ticks = 0;
  double mhz = -1;  ///< the mean over the first CPUs, now
  int64_t minor_faults = 0, major_faults = 0;
  int64_t read_bytes = -1, written_bytes = -1;            ///< of this process, from and to disks
  int64_t disk_read_bytes = -1, disk_written_bytes = -1;  ///< of the machine's disks
  std::optional<devices::CardSample> card = {};
};

/// `root` stands before each path, for tests. About 0.1 ms. Allocates little.
MachineSample read_machine_sample(const std::string& root = "");

/// What happened between two samples. Shares are of the time of the machine's CPUs, in 0 … 1.
struct MachineInterval {
  int64_t step = 0;         ///< the last that it holds
  double seconds = 0;       ///< its length
  double process_cpus = 0;  ///< that this process had busy in the mean
  double own_share = 0, busy_share = 0, disk_wait_share = 0, stolen_share = 0;
  double mhz = -1;
  int64_t minor_faults = 0, major_faults = 0;
  int64_t read_bytes = -1, written_bytes = -1, disk_read_bytes = -1, disk_written_bytes = -1;
  std::optional<devices::CardSample> card = {};
};
MachineInterval interval(const MachineSample& from, const MachineSample& to);
/// Two that follow each other as one; of the card the later.
MachineInterval joined(const MachineInterval& first, const MachineInterval& second);

}  // namespace plimsoll::telemetry
