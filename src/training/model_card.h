// README.md of final/: what was trained on what, with which plan, to which loss, in the form of a model card.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "settings/run_config.h"
#include "strategy/prepare.h"
#include "training/observer.h"

namespace plimsoll::training {

/// What a run has come to. Times and machines stand in no card: the same run leaves the same one.
struct CardFigures {
  int64_t steps = 0;
  int64_t units = 0;                ///< of the task, trained on
  std::optional<double> loss = {};  ///< of the last step, where this process did it
  std::optional<EvalEvent> eval = {};
  std::vector<std::string> changes = {};  ///< CheckpointManifest::changes
  std::string best = {};  ///< of the evaluations, where the model is that one's; empty: it is the last step's
};

std::string model_card(const settings::RunConfig& config, const strategy::Prepared& prepared,
                       const CardFigures& figures);

}  // namespace plimsoll::training
