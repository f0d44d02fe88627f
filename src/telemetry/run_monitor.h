// The machine beside a run, in its events every few seconds.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/tree.h"
#include "settings/run_config.h"
#include "telemetry/machine_sample.h"
#include "telemetry/monitor_findings.h"

namespace plimsoll::telemetry {

class RunMonitor {
 public:
  /// Looks now for the first time, and for a card's library where the run has a card.
  explicit RunMonitor(const settings::RunConfig& config);
  /// At a step's end: where output.monitor_seconds have gone by since the last one, {"event": "machine", …}
  /// of them; else null.
  io::Tree after(int64_t step);
  /// What of it slowed the run. Nothing before the first interval.
  [[nodiscard]] std::vector<MachineFinding> findings() const { return machine_findings(intervals_); }

 private:
  [[nodiscard]] MachineSample look() const;
  void keep(MachineInterval interval);

  double every_;
  std::unique_ptr<devices::CardMonitor> card_;
  MachineSample last_;
  std::vector<MachineInterval> intervals_;  ///< joined where there are many
};

/// {"event": "machine", "step", "seconds", …}; what is not known is left out.
io::Tree machine_event(const MachineInterval& interval);

}  // namespace plimsoll::telemetry
