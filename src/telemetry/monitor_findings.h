// Summarises what slowed a run down, from machine samples.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "telemetry/machine_sample.h"

namespace plimsoll::telemetry {

struct MachineFinding {
  std::string what;  ///< a sentence: "2 % of the time was stolen by the hypervisor"
  double share = 0;  ///< of the run's time that it cost, as far as that can be said; 0: not
  std::string hint;  ///< what would help
};

/// Of intervals in order; the largest share first. A pure function. What is below these is not said: 1 %
/// stolen or waited for the disk, a clock 10 % lower than at its best, others' 10 % of CPUs that were all
/// busy, a page a second read back, a card that was idle or slowed for 10 % of the samples.
std::vector<MachineFinding> machine_findings(std::span<const MachineInterval> intervals);

}  // namespace plimsoll::telemetry
