// One training run: a session, its data, and the life of a step.
//
//   rate, counters, 1/targets ─► micro-batch ─► program ─► … ─► update ─► loss and norm ─► event
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "checkpoints/checkpoint_resume.h"
#include "checkpoints/checkpoint_writer.h"
#include "checkpoints/load_weights.h"
#include "ops/loss_scale.h"
#include "preprocessing/run_data.h"
#include "ranks/group.h"
#include "runtime/session.h"
#include "settings/distributed.h"
#include "settings/param_groups.h"
#include "settings/schedule.h"
#include "strategy/prepare.h"
#include "training/batch_feeder.h"
#include "training/best_model.h"
#include "training/evaluator.h"
#include "training/model_card.h"
#include "training/observer.h"
#include "training/roll_call.h"
#include "training/step_dump.h"
#include "training/update_counts.h"

namespace plimsoll::checkpoints {
struct FinalRecord;
}

namespace plimsoll::training {

struct TrainerOptions {
  /// No files: examples are drawn (Task::draw), the same in each run. For benchmarks.
  bool synthetic_data = false;
  /// auto: the newest intact checkpoint of output.dir, if there is any; never; or a checkpoint's folder.
  std::string resume = "auto";
  /// Settings of the rate that may differ from the checkpoint's, by path.
  std::vector<std::string> resume_with = {};
  /// What prepare_data found; nothing: the trainer asks itself.
  std::optional<preprocessing::RunData> data = {};
  /// Likewise what stands beside config and weights in checkpoints and final/.
  std::optional<checkpoints::ModelFileSet> model_files = {};
  /// The ranks of the run; outlives the trainer. Rank 0 alone writes, saves and evaluates; the others resume
  /// from what it has resumed from. Null: one rank.
  ranks::Group* group = nullptr;
  /// Receives which programs run; outlives the trainer.
  ProgramObserver* programs = nullptr;
  /// Asked while data is made ready and while an evaluation runs.
  Stop stop = {};
  /// Lines for people: a checkpoint that was passed over, what is gone on from.
  checkpoints::Note note = [](const std::string&) {};
};

class Trainer {
 public:
  /// Opens the data, takes the output folder for itself and the memory of the plan, and initialises the
  /// parameters: from a checkpoint where there is one to go on from, else from pretrained weights or at
  /// random. Errors: data, checkpoints (65), output (74), schedule, a run that is not the checkpoint's (2).
  /// `prepared` must fit. A finished model in the output folder is never replaced unasked (2).
  static Result<std::unique_ptr<Trainer>> create(const settings::RunConfig& config,
                                                 strategy::Prepared prepared, runtime::Device& device,
                                                 const TrainerOptions& options = {});

  /// The next step. Errors: kDiverged for a loss that is not finite, or an op that gave other bits when it
  /// was run again; data; dump.
  Result<StepEvent> step();
  /// Loss over the whole of data.eval; nothing where TrainerOptions::stop asked before the end. Call only
  /// where has_eval(); where ranks share the parameters, on all of them.
  Result<std::optional<EvalEvent>> evaluate(const EvalProgress& progress = {});
  [[nodiscard]] bool has_eval() const { return evaluator_ != nullptr; }

  /// Begins to save a checkpoint of the last step; with output.save_steps it is written behind the next one.
  /// Errors: kIo, also an earlier save's.
  Status start_checkpoint();
  /// What this rank has to say before its first step, and after one.
  [[nodiscard]] RankReport first_report() const;
  [[nodiscard]] RankReport report_of(const StepEvent& event) const;
  /// Whether the ranks share states: while rank 0 saves, the others serve them, and then it lets them go.
  [[nodiscard]] bool shares_states() const { return session_ && !session_->plan().shared.empty(); }
  /// Whether they share the parameters, so that all compute what one evaluates.
  [[nodiscard]] bool shares_parameters() const {
    return group_ != nullptr && settings::shares_parameters(config_.distributed);
  }
  /// Where ranks share the parameters: begins adapters with those of the base, and looks for weights beyond
  /// the range of fp16. All ranks at the same place, once they can exchange bytes and before anything reads
  /// the parameters. Errors: as checkpoints::start_adapters and checkpoints::check_fp16_range.
  Status start_shared_parameters();
  /// Whether this rank has all of what it has of the parameters: not where each has updated its pieces, and
  /// the next step gathers those of the others.
  [[nodiscard]] bool has_parameters() const { return gather_program_ < 0 || is_gathered_; }
  /// Gathers them, on all ranks at the same place. Errors: of the device, of other ranks.
  Status gather_parameters();
  Status serve_shared_states() { return session_->serve_shared_states(); }
  Status end_shared_reads() { return session_->end_shared_reads(); }
  /// The folder of the checkpoint that was gone on from; "never": of none.
  [[nodiscard]] std::string resumed_from() const { return checkpoint_ ? checkpoint_->path : "never"; }

  /// A save that has ended since it was last asked for; with `wait`, waits for the one in flight.
  Result<std::optional<checkpoints::SaveReport>> next_saved(bool wait);
  /// Whether the last step's state is in the checkpoint gone on from, or in one begun since.
  [[nodiscard]] bool is_checkpointed() const { return saved_step_ == step_; }
  /// The folder that holds the last saved step.
  [[nodiscard]] std::string checkpoint_folder() const;
  /// With training.load_best_model_at_end: the session holds the best checkpoint's model from here on, and no
  /// step follows. Call when no save is in flight; ranks that share states call it together. Errors:
  /// kBadData, kIo of that checkpoint.
  Status restore_best();
  [[nodiscard]] const BestModel& best() const { return best_; }
  /// Writes `<output.dir>/final`. Errors: kIo.
  Result<checkpoints::SaveReport> save_final();
  /// Whether final/ and its record hold the checkpoint that was gone on from, and nothing has been trained
  /// since.
  [[nodiscard]] bool final_is_right() const;
  /// The output folder holds this run's finished model, and no checkpoint of its last step: there is neither
  /// a session nor anything to do.
  [[nodiscard]] bool was_finished() const { return finished_; }

  [[nodiscard]] int64_t total_steps() const { return total_steps_; }
  [[nodiscard]] int64_t steps_done() const { return step_; }
  /// Of an epoch; without files that of one step.
  [[nodiscard]] int64_t sequences_per_epoch() const {
    return train_data_ ? train_data_->num_examples() : config_.training.global_batch_size;
  }
  /// Whether an epoch ends within this step, from 1 on: batches run on from one epoch into the next.
  [[nodiscard]] bool ends_epoch(int64_t step) const {
    const int64_t batch = config_.training.global_batch_size, epoch = sequences_per_epoch();
    return step * batch / epoch > (step - 1) * batch / epoch;
  }
  /// Whether an evaluation or a checkpoint is due after a step other than the last one.
  [[nodiscard]] bool evaluates_after(int64_t step) const {
    const auto& t = config_.training;
    return t.eval_strategy == "epoch" ? ends_epoch(step) : t.eval_steps > 0 && step % t.eval_steps == 0;
  }
  [[nodiscard]] bool saves_after(int64_t step) const {
    const auto& out = config_.output;
    return out.save_strategy == "epoch" ? ends_epoch(step) : out.save_steps > 0 && step % out.save_steps == 0;
  }
  /// No step is left, or training.early_stopping_patience is at its end.
  [[nodiscard]] bool is_finished() const { return step_ >= total_steps_ || best_.stops(); }
  /// From the first step of the run on.
  [[nodiscard]] int64_t units_trained() const { return units_; }
  /// Whether the last step has been evaluated, by this process or before the checkpoint, or there is no data
  /// to evaluate on.
  [[nodiscard]] bool is_evaluated() const { return !has_eval() || evaluated_step_ == step_; }
  /// What was read of the model's folder; nothing where the weights are random or a checkpoint's.
  [[nodiscard]] const std::optional<checkpoints::LoadReport>& loaded() const { return loaded_; }
  [[nodiscard]] const settings::RunConfig& config() const { return config_; }
  [[nodiscard]] const strategy::Prepared& prepared() const { return prepared_; }
  [[nodiscard]] runtime::Session& session() { return *session_; }
  [[nodiscard]] const runtime::Session& session() const { return *session_; }
  /// The session's, or what it would be.
  [[nodiscard]] const passes::SessionPlan& plan() const {
    return session_ ? session_->plan() : prepared_.programs.session;
  }

 private:
  Trainer(const settings::RunConfig& config, strategy::Prepared prepared)
      : config_(config),
        prepared_(std::move(prepared)),
        groups_(settings::group_hypers(config.training)),
        best_(config.training) {}
  /// The best checkpoint's step; -1 where there is none, or the session holds its model. Of all ranks that
  /// share states, together.
  Result<int64_t> step_to_restore();
  /// Whether the evaluation at hand is to end; of ranks that compute it together rank 0 says so to all.
  [[nodiscard]] bool is_evaluation_stopped() const;
  [[nodiscard]] bool is_first() const { return group_ == nullptr || group_->rank() == 0; }
  /// Which rows of the effective batch are this rank's.
  Status take_share(const TrainerOptions& options);
  Status open_data(const TrainerOptions& options);
  /// What a checkpoint says of this run: everything but counters and files.
  Result<checkpoints::CheckpointManifest> describe_run();
  /// Settles from which checkpoint to go on, before any memory is taken.
  Status choose_checkpoint(const TrainerOptions& options);
  /// Holds the chosen one against this run.
  Status take_checkpoint(const TrainerOptions& options);
  Status take_output_folder(const TrainerOptions& options);
  /// Looks at a finished model in the output folder: takes it where it is this run's, and refuses to replace
  /// another one. Errors: kInvalidArgument naming what differs, and what to do; kIo.
  Status guard_final(const TrainerOptions& options);
  [[nodiscard]] Status check_finished_model(const checkpoints::FinalRecord& record,
                                            const std::string& final) const;
  void take_finished(const checkpoints::FinalRecord& record);
  /// Whether what the run may go on from lies in its own output folder.
  [[nodiscard]] bool goes_on_here() const;
  Status initialise(const TrainerOptions& options);
  /// Refuses another program's folder where a checkpoint after `step` will be saved.
  [[nodiscard]] Status check_places(int64_t step) const;
  /// Loads the chosen checkpoint, or the next that is intact.
  Status load(const TrainerOptions& options);
  Status make_writer(const TrainerOptions& options);
  /// What saving takes of the disk until the end. Errors: kIo where there is less.
  Status check_room(const std::vector<std::string>& stale, const checkpoints::Note& note) const;
  /// The step's effective batch, and its targets. Errors: data.
  Status take_batch(StepEvent& event);
  /// A micro-batch's rows to the inputs of a bucket.
  Status feed(int64_t micro_batch, size_t bucket);
  /// Looks up what is run, so that steps need no names.
  void find_programs();
  /// Writes what the step's programs are told, as one block, and resets the sum of its losses.
  Status write_scalars();
  /// Compares the last evaluation with those before. Errors: as BestModel::add.
  Status compare_evaluation(const EvalEvent& event);
  /// The model's counts of updates into the session, before they are read. Errors: of the device.
  Status write_counts();
  [[nodiscard]] checkpoints::RunCounters counters() const {
    return {step_, evaluated_step_, units_, skipped_, skipped_in_a_row_, best_.state()};
  }
  /// The error with where the run can go on from.
  [[nodiscard]] Error save_failed(Error error) const;
  Status run_micro_batches(StepEvent& event);
  /// One of the step's; each op twice where debug.verify_steps says so. Errors: kDiverged where two runs of
  /// an op differ.
  Status run_program(int program);
  /// Reads the loss scale's state into scaler_, where the loss is scaled.
  Status read_scaler();
  /// The loss scale at its first value.
  Status reset_scaler();
  /// Whether what a checkpoint had for the loss scale is one. Errors: kBadData.
  Status check_scaler();
  /// `source`: what errors name beside the tensor.
  Status check_fp16_range(const std::string& source, runtime::Communicator* ranks = nullptr);
  /// The schedule's step: that of the run less those that were skipped before it.
  [[nodiscard]] int64_t schedule_step() const;
  /// Whether the step that has run leaves something to go on with. Errors: kDiverged.
  Status check_finite(const StepEvent& event);
  Status check_scale();
  /// "a, b and 3 more": the parameters whose gradients were not finite.
  [[nodiscard]] Result<std::string> overflowed() const;

  settings::RunConfig config_;  ///< strategies that go by epochs are settled when the data is there
  strategy::Prepared prepared_;
  std::unique_ptr<runtime::Session> session_;
  std::vector<optimizers::GroupHyper> groups_;  ///< of training.param_groups
  std::unique_ptr<settings::Schedule> schedule_;
  std::unique_ptr<datasets::TrainingData> train_data_;  ///< null: synthetic
  std::unique_ptr<BatchFeeder> train_feeder_;
  std::vector<std::vector<int>> micro_programs_;  ///< by bucket, the program of each micro-batch
  std::string isa_;
  int update_program_ = -1, logits_program_ = -1, gather_program_ = -1;
  bool is_gathered_ = true;  ///< see has_parameters
  size_t bucket_ = 0;        ///< of the effective batch at hand
  ranks::Group* group_ = nullptr;
  struct Rows {
    int64_t first = 0, end = 0;
  } own_rows_;  ///< of the effective batch
  runtime::BlockId scalars_;
  std::array<float, ops::kScalerFields> scaler_{};  ///< the loss scale's state as last read
  std::unique_ptr<Evaluator> evaluator_;
  std::unique_ptr<StepDump> dump_;
  UpdateCounts counts_;  ///< of the normalisation layers
  std::optional<io::DirectoryLock> lock_;
  checkpoints::CheckpointManifest manifest_;
  checkpoints::ResumeChoice choice_;
  bool finished_ = false;                              ///< see was_finished
  size_t candidate_ = 0;                               ///< of choice_: the one that checkpoint_ is
  std::optional<checkpoints::Checkpoint> checkpoint_;  ///< gone on from
  std::unique_ptr<checkpoints::CheckpointWriter>
      writer_;  ///< after the session, whose memory its thread reads
  std::vector<std::byte> scratch_;
  std::unique_ptr<datasets::Loader> loader_;  ///< after the data, which its threads read
  datasets::LoadedBatch batch_;               ///< of the step at hand
  std::optional<checkpoints::LoadReport> loaded_;
  int64_t num_targets_ = 0;  ///< of the effective batch at hand
  int64_t units_ = 0;        ///< trained on, from the first step of the run
  int64_t total_steps_ = 0;
  int64_t step_ = 0;
  int64_t skipped_ = 0;  ///< steps of the run that an overflow has skipped
  int64_t skipped_in_a_row_ = 0;
  int64_t saved_step_ = -1;
  int64_t evaluated_step_ = -1;
  CardFigures figures_;  ///< of the last step and evaluation
  BestModel best_;
  Stop stop_;
  std::optional<checkpoints::Checkpoint> restored_;  ///< whose model the session holds in the end
};

}  // namespace plimsoll::training
