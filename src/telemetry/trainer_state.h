// trainer_state.json as transformers writes it (TrainerState), made of a run's events: scripts that read a
// Trainer's log_history read this one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "checkpoints/checkpoint.h"
#include "settings/run_config.h"

namespace plimsoll::telemetry {

/// What the events do not say.
struct RunState {
  int64_t step = 0, total_steps = 0, units = 0;
  bool counts_tokens = true;  ///< the units are tokens
  int64_t sequences_per_epoch = 1;
  int64_t micro_batch_size = 1;
  double flops_per_step = 0;
  std::optional<checkpoints::BestState> best = {};
  std::optional<double> seconds = {};  ///< of a run that has ended: what its last process took
  int64_t seconds_steps = 0;           ///< and in so many steps
};

/// Writes `path` from the events up to `state.step`. Where these cannot be read to their end, the history is
/// the shorter and the error is returned; what cannot be written is removed. Errors: kIo; kBadData where
/// there are no events.
Status write_trainer_state(const std::string& path, const std::string& events,
                           const settings::RunConfig& config, const RunState& state);

}  // namespace plimsoll::telemetry
