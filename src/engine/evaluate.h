// `plimsoll eval`, from the plan to the figures.
#pragma once

#include <string>

#include "preprocessing/run_data.h"
#include "settings/run_config.h"

namespace plimsoll::engine {

/// The whole of `plimsoll eval`: plan, weights, one pass over data.eval, the figures. Errors: as training's;
/// kDiverged where the loss is not finite, after the figures.
struct EvaluationOptions {
  bool json = false;
  std::string dump_ir = {};
  preprocessing::DataProgress data_progress = {};
  Stop stop = {};  ///< asked often; ends with kInterrupted
};
Status run_evaluation(const settings::RunConfig& config, const EvaluationOptions& options);

}  // namespace plimsoll::engine
