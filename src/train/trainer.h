// One training run: a session, its data, and the life of a step.
//
//   rate, counters, 1/targets ─► micro-batch ─► program ─► … ─► update ─► loss and norm ─► event
#pragma once

#include <memory>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "runtime/session.h"
#include "train/batch_feeder.h"
#include "train/events.h"
#include "train/prepare.h"
#include "train/schedule.h"
#include "train/tensor_files.h"

namespace plimsoll::train {

struct TrainerOptions {
  /// No files: tokens are drawn uniformly, the same in each run. For benchmarks.
  bool synthetic_data = false;
};

class Trainer {
 public:
  /// Opens the data, takes the memory of the plan and initialises the parameters. Errors: data (65), output
  /// (74), schedule (2). `prepared` must fit.
  static Result<std::unique_ptr<Trainer>> create(const RunConfig& config, Prepared prepared,
                                                 cpu::CpuBackend& backend,
                                                 const TrainerOptions& options = {});

  /// The next step. Errors: kDiverged for a loss that is not finite; data; dump.
  Result<StepEvent> step();
  /// Loss over the whole of data.eval. Call only where has_eval().
  Result<EvalEvent> evaluate();
  [[nodiscard]] bool has_eval() const { return eval_data_ != nullptr; }
  /// Writes `<output.dir>/final`; returns the path.
  Result<std::string> save_final();

  [[nodiscard]] int64_t total_steps() const { return total_steps_; }
  [[nodiscard]] int64_t steps_done() const { return step_; }
  [[nodiscard]] const Prepared& prepared() const { return prepared_; }
  [[nodiscard]] runtime::Session& session() { return *session_; }
  [[nodiscard]] const runtime::Session& session() const { return *session_; }

 private:
  Trainer(const RunConfig& config, Prepared prepared) : config_(config), prepared_(std::move(prepared)) {}
  Status open_data(const TrainerOptions& options);
  Status initialise();
  Result<int64_t> feed_training(int64_t micro_batch);
  void feed_synthetic(int64_t micro_batch);
  void write_scalars();
  /// Targets of an effective batch. Every sequence of training is whole: its last token predicts nothing, all
  /// others count.
  [[nodiscard]] int64_t num_targets() const;
  Status run_micro_batches(StepEvent& event);

  const RunConfig& config_;
  Prepared prepared_;
  std::unique_ptr<runtime::Session> session_;
  std::unique_ptr<Schedule> schedule_;
  std::unique_ptr<Dataset> train_data_, eval_data_;
  std::unique_ptr<BatchOrder> train_order_;
  std::unique_ptr<BatchFeeder> train_feeder_, eval_feeder_;
  std::unique_ptr<StepDump> dump_;
  std::vector<std::byte> scratch_;
  int64_t total_steps_ = 0;
  int64_t step_ = 0;
};

/// The whole of `plimsoll train`: plan, steps, evaluations, the final model, the summary.
struct RunOptions {
  bool json = false;
  std::string dump_ir = {};
  double process_start_seconds = 0;  ///< steady clock when the process began
};
Status run_training(const RunConfig& config, const RunOptions& options);

/// Steady clock in seconds.
double now_seconds();

}  // namespace plimsoll::train
