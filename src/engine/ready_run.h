// Prepares a run up to the point where it allocates its memory: its plan fits and its data lies ready.
#pragma once

#include <memory>
#include <string>

#include "checkpoints/model_file.h"
#include "preprocessing/run_data.h"
#include "runtime/communicator.h"
#include "runtime/device.h"
#include "strategy/prepare.h"
#include "telemetry/events.h"

namespace plimsoll::engine {

struct ReadyRun {
  std::unique_ptr<runtime::Device> device;
  strategy::Prepared prepared;
  preprocessing::RunData data;
  checkpoints::ModelFileSet model_files;  ///< of a training
};

/// Whether a training reads the weights of the model's folder: not where it continues from a checkpoint,
/// which has all that they had, or is finished. Adapters read their base in any case. `resume` as
/// TrainOptions.
bool loads_weights(const settings::RunConfig& config, const std::string& resume);

/// Plans, holds the weights that are to be loaded (`loads_weights`) against the model, has the data made
/// ready by a process of its own, and plans again where the data decides on lengths. Tells `events` of the
/// plan that is run, or of the one that does not fit, and of the data. `communicator`: the device's, of
/// several ranks. Call while no other thread runs. Errors: as prepare, check_weights and prepare_data;
/// kDoesNotFit.
Result<ReadyRun> make_ready(const settings::RunConfig& config, const strategy::PrepareOptions& planning,
                            bool loads_weights, const preprocessing::DataProgress& progress, const Stop& stop,
                            telemetry::Events& events, runtime::Communicator* communicator = nullptr);

}  // namespace plimsoll::engine
