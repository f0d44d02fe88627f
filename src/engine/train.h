// `plimsoll train`, from the plan to the summary.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "preprocessing/run_data.h"
#include "settings/run_config.h"

namespace plimsoll::engine {

/// The whole of `plimsoll train`: plan, steps, evaluations, checkpoints, the final model, the summary.
/// Errors: kInterrupted where it was asked to stop, after saving.
struct RunOptions {
  bool json = false;
  std::string dump_ir = {};
  std::string resume = "auto";                ///< auto | never | a checkpoint's folder
  std::vector<std::string> resume_with = {};  ///< as training::TrainerOptions
  int64_t memory_summary = 0;                 ///< a table of the memory every so many steps; 0: none
  std::string snapshot = {};                  ///< a file for what has run, see run_snapshot.h; empty: none
  double process_start_seconds = 0;           ///< steady clock when the process began
  preprocessing::DataProgress data_progress = {};
  Stop stop = {};                           ///< asked between steps, while data is made ready, …
  std::function<bool()> memory_asked = {};  ///< asked after each step: print a table of the memory now?
};
Status run_training(const settings::RunConfig& config, const RunOptions& options);

}  // namespace plimsoll::engine
