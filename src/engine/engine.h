// The facade of the modules: an engine plans, opens, trains, evaluates and predicts for whoever has a run
// file. The command line is one caller. Nothing here prints, exits, forks by itself or installs a signal
// handler: reports go to a sink, a predicate is asked whether to stop, and base/host.h does what concerns the
// process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/stop.h"
#include "engine/predict.h"
#include "engine/ready_run.h"
#include "preprocessing/run_data.h"
#include "ranks/group.h"
#include "settings/run_config.h"
#include "strategy/plan_cache.h"
#include "telemetry/sink.h"
#include "training/trainer.h"

namespace plimsoll::engine {

struct TrainOptions {
  std::string dump_ir = {};
  std::string resume = "auto";                ///< auto | never | a checkpoint's folder
  std::vector<std::string> resume_with = {};  ///< as training::TrainerOptions
  int64_t memory_summary = 0;                 ///< a table of the memory every so many steps; 0: none
  std::function<bool()> memory_asked = {};    ///< asked after each step: report a table of the memory now?
  std::string snapshot = {};                  ///< a file for what has run, see run_snapshot.h; empty: none
  double process_start_seconds = 0;           ///< steady clock when the process began
  preprocessing::DataProgress data_progress = {};
  /// The ranks that train together, of which this process is one; outlives the run. Null: one rank.
  ranks::Group* group = nullptr;
};

struct EvaluateOptions {
  std::string dump_ir = {};
  preprocessing::DataProgress data_progress = {};
};

struct OpenOptions {
  std::string resume = "never";  ///< as TrainOptions
  preprocessing::DataProgress data_progress = {};
};

/// A run that has its memory and its data: steps at will. The trainer refers to the others.
struct OpenRun {
  settings::RunConfig config;
  std::unique_ptr<runtime::Device> device;
  std::unique_ptr<training::Trainer> trainer;
};

class Engine {
 public:
  /// `sink` outlives the engine and what it opens. `stop` is asked often, from the thread that called.
  explicit Engine(telemetry::Sink& sink, Stop stop = {}) : sink_(sink), stop_(std::move(stop)) {}

  /// What the run needs; reads no data and no weights. Errors: as strategy::prepare; that it does not fit is
  /// none.
  static Result<strategy::Prepared> plan(const settings::RunConfig& config,
                                         const strategy::PrepareOptions& options);
  /// The same, with what plans of the same run have left in `cache`.
  static Result<strategy::Prepared> plan(const settings::RunConfig& config,
                                         const strategy::PrepareOptions& options, strategy::PlanCache& cache);
  /// Adds to a plan what else would fit and why the step is run as it is, by more plans; `cache`: that
  /// plan's.
  static void explain(const settings::RunConfig& config, const strategy::PrepareOptions& options,
                      strategy::Prepared& prepared, strategy::PlanCache cache = {});

  /// Reports the plan and takes memory and data; tokens are drawn where the run file names none. Errors: as
  /// plan, make_ready and Trainer::create; kDoesNotFit.
  Result<std::unique_ptr<OpenRun>> open(const settings::RunConfig& config, const OpenOptions& options = {});

  /// Plan, steps, evaluations, checkpoints, the final model, the summary. Of several ranks the first alone
  /// reports and writes. Errors: kInterrupted where it was asked to stop, after saving; of other ranks, where
  /// what is_told has no text.
  Status train(const settings::RunConfig& config, const TrainOptions& options = {});

  /// Plan, weights, one pass over data.eval, the figures. Errors: as training's; kDiverged where the loss is
  /// not finite, after the figures.
  Status evaluate(const settings::RunConfig& config, const EvaluateOptions& options = {});

  /// A classifier's answers, see PredictRequest.
  Status predict(const PredictRequest& request);

 private:
  Status train_one(const settings::RunConfig& config, const TrainOptions& options);
  telemetry::Sink& sink_;
  Stop stop_;
};

}  // namespace plimsoll::engine
