// Prepares a plan from a run file: the model, the split into micro-batches, the programs, the report. `plan`
// stops here, `train` goes on; both see the same figures.
#pragma once

#include <memory>
#include <optional>

#include "base/machine_memory.h"
#include "models/model.h"
#include "planner/programs/step_programs.h"
#include "planner/report/report.h"
#include "preprocessing/run_data.h"
#include "settings/run_config.h"
#include "tasks/task.h"

namespace plimsoll::strategy {

class PlanCache;

/// What the programs are for: all of training, or the loss alone.
enum class Purpose : uint8_t { kTrain, kEvaluate };

/// What is asked of a plan.
enum class PlanRequest : uint8_t {
  kPrograms,  ///< its programs, verified, and the disk that the run needs; where nothing fits, as kReport
  kReport,    ///< the report alone; where nothing fits, that of the plan that needs least memory
  kFit,       ///< the report alone; where nothing fits, that of any plan, which is found sooner
};

struct PrepareOptions {
  int num_threads = 1;
  std::string dump_ir = {};  ///< where each program's text after each pass goes: DIR/<program>/NN-pass.ir
  Purpose purpose = Purpose::kTrain;
  /// Lengths to make programs for; nothing: as the data says where it is tokenized, else the settings.
  std::optional<preprocessing::Buckets> buckets = {};
  /// Of a classifier, as the data has them; nothing: as they can be found before the data is made ready.
  std::optional<io::Labels> labels = {};
  int64_t num_eval = 0;       ///< and how many examples it is evaluated on, as far as it is known
  int64_t reading_bytes = 0;  ///< of images: as RunData has it
  int64_t more_bytes = 0;     ///< as if each budget had so much more
  bool looks_at_data = true;  ///< for what is not given here, where the data lies there
  std::optional<MachineMemory> memory = {};  ///< what budgets are read from; nothing: as it is now
  PlanRequest request = PlanRequest::kPrograms;
};

struct Prepared {
  io::ConfigJson model_config;  ///< a classifier's with its labels
  std::unique_ptr<models::Model> model;
  std::unique_ptr<tasks::Task> task;
  std::optional<io::Labels> labels = {};  ///< of a classifier
  bool fresh_head = false;  ///< the weights are a language model's: the classifier's head is drawn
  settings::BatchSplit split = {};
  planner::TrainingPrograms programs = {};
  planner::PlanReport report = {};
  std::vector<planner::Alternative> considered = {};  ///< all that were planned, the one that runs among them
  int64_t host_scratch_bytes = 0;  ///< the one host buffer: reading data, summing dumped gradients
  datasets::LoaderOptions loader;  ///< how the training reads ahead
  preprocessing::Buckets buckets;  ///< lengths of the programs
  MachineMemory memory = {};       ///< as budgets were read from it
  std::shared_ptr<const planner::CostModel> costs = {};  ///< of runtime.profile
  std::string profile_identity = {};                     ///< of a calibrated one
  bool is_cpu = false;                                   ///< the device that the plan is for

  /// What tokenizers are held to; 0: the model knows no tokens.
  [[nodiscard]] int64_t vocab_size() const;
};

/// Plans the run for `target`. Where micro_batch_size is auto, takes the divisor of the global batch whose
/// plan is the fastest, by the estimate, of those that fit. A plan that does not fit is no error here:
/// report.fits is false. Errors: as load_model_config, make_model, check_against_model.
Result<Prepared> prepare(const settings::RunConfig& config, const runtime::Target& target,
                         const PrepareOptions& options);
/// The same plan, with what plans of the same run under other budgets have left in `cache`.
Result<Prepared> prepare(const settings::RunConfig& config, const runtime::Target& target,
                         const PrepareOptions& options, PlanCache& cache);

/// The same for a model, a task and what else prepare_model fills, made already.
Result<Prepared> plan_prepared(const settings::RunConfig& config, Prepared prepared,
                               const runtime::Target& target, const PrepareOptions& options,
                               PlanCache& cache);

/// The plan before the data is made ready. Where the data decides on lengths it is that of the longest alone,
/// which every choice needs: what does not fit now never will, what fits may not with the others. Labels that
/// stand in the data alone are taken to be few.
Result<Prepared> prepare_before_data(const settings::RunConfig& config, const runtime::Target& target,
                                     PrepareOptions options);
/// And after it: planned again where lengths or labels are others. Whether that fits is for the caller to
/// see.
Status prepare_after_data(const settings::RunConfig& config, const runtime::Target& target,
                          PrepareOptions options, const preprocessing::RunData& data, Prepared& prepared);

/// The error of a plan that does not fit: exit 69, with the least budget that would do.
Error does_not_fit(const Prepared& prepared);

/// How TrainingData is to read one of the two sides for the task. `prepared` outlives what it is given to.
datasets::TrainingDataOptions data_options(const settings::RunConfig& config, const Prepared& prepared,
                                           const preprocessing::RunData& data, bool eval);

/// How a step of that split computes its gradients.
planner::Accumulation accumulation_of(const settings::RunConfig& config, const settings::BatchSplit& split);

/// runtime.threads, or the CPUs that the process may use.
int num_threads(const settings::RunConfig& config);

}  // namespace plimsoll::strategy
