// `plimsoll train`, from the plan to the summary.
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>

#include "base/process_memory.h"
#include "base/signals.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/checkpoint_resume.h"
#include "checkpoints/final_record.h"
#include "preprocessing/template_date.h"
#include "settings/schedule.h"
#include "train/estimate_check.h"
#include "train/ready_run.h"
#include "train/run_folder.h"
#include "train/run_memory.h"
#include "train/run_monitor.h"
#include "train/run_record.h"
#include "train/swap_watch.h"
#include "train/trainer.h"

namespace plimsoll::train {
namespace {

/// The mean loss since the last event, as transformers logs it. What is not finite is left out where
/// something is: a step under a loss scale that is too large trains nothing.
class MeanLoss {
 public:
  explicit MeanLoss(bool leaves_out) : leaves_out_(leaves_out) {}
  double add(double loss) {
    last_ = loss;
    if (std::isfinite(loss) || !leaves_out_) sum_ += loss, ++count_;
    return count_ > 0 ? sum_ / static_cast<double>(count_) : last_;
  }

 private:
  bool leaves_out_;
  double sum_ = 0, last_ = 0;
  int64_t count_ = 0;
};

std::string nothing_left(const Trainer& trainer) {
  return fmt::format(
      "nothing is left to do: {} {} steps are done and {} is whole; to train again choose another "
      "output.dir, or --resume never, which replaces it at the end",
      trainer.steps_done() < trainer.total_steps() ? "the run stopped early," : "all", trainer.steps_done(),
      final_path(trainer.config().output.dir));
}

class Run {
 public:
  Run(const RunConfig& config, const RunOptions& options, Trainer& trainer, Events& events)
      : config_(config),
        options_(options),
        trainer_(trainer),
        events_(events),
        folder_(config, trainer, [&events](const std::string& text) { events.warning(text); }),
        record_(options.process_start_seconds),
        losses_(config.training.logging_nan_inf_filter),
        memory_(trainer, events, options.memory_summary),
        monitor_(config) {
    events.log_to([this](const std::string& line) { folder_.line(line); });
  }
  ~Run() { events_.log_to({}); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  /// What the run has told so far outlives its failure too.
  Status operator()() {
    Status ended = train();
    if (!ended && ended.error().code != ErrorCode::kInterrupted) folder_.write_state();
    return ended;
  }

 private:
  Status train() {
    const bool finished = trainer_.is_finished();
    PLIMSOLL_TRY(
        evaluate_if_due());  // where a signal came before the evaluation of the step it stopped after
    while (!trainer_.is_finished()) {
      if (stop_requested() != 0) return stop();
      PLIMSOLL_TRY(step());
    }
    if (stop_requested() != 0 && !trainer_.is_evaluated()) return stop();
    PLIMSOLL_TRY(hold(report_saved(/*wait=*/true), /*last=*/true));
    if (trainer_.steps_done() < trainer_.total_steps()) tell_early_stop();
    PLIMSOLL_TRY(trainer_.restore_best());
    if (finished && trainer_.final_is_right()) {
      events_.note(nothing_left(trainer_));
    } else {
      PLIMSOLL_TRY(save_final());
    }
    Summary summary = record_.summary(trainer_);
    summary.phase_peak_bytes = memory_.phases();
    events_.summary(summary);
    for (const MachineFinding& finding : monitor_.findings())
      events_.note(finding.what + ": " + finding.hint);
    folder_.write_state(&summary);
    return Ok{};
  }

  /// At the last step a save that failed is kept for later: the model is written even where its checkpoint
  /// cannot be.
  Status hold(Status saved, bool last) {
    if (saved || !last) return saved;
    if (!unsaved_) unsaved_ = std::move(saved).error();
    return Ok{};
  }

  void tell_early_stop() {
    const BestState best = *trainer_.best().state();
    events_.note(
        fmt::format("stopped early after step {}: eval_{} is no better than {:.6g} (step {}) for {} "
                    "evaluation{}",
                    trainer_.steps_done(), best.metric, best.value, best.step, best.waited,
                    best.waited == 1 ? "" : "s in a row"));
  }

  Status save_final() {
    const Result<SaveReport> saved = trainer_.save_final();
    if (saved) events_.checkpoint(*saved);
    if (saved && saved->unrecorded)
      events_.warning(saved->unrecorded->message() +
                      ": the model is saved, but a later run in this folder cannot tell which run made it");
    // Weights that output.dtype cannot hold are not lost for that.
    if (!saved && saved.error().code == ErrorCode::kBadData && !trainer_.is_checkpointed()) {
      PLIMSOLL_TRY(start_checkpoint());
      PLIMSOLL_TRY(report_saved(/*wait=*/true));
    }
    if (unsaved_) return *unsaved_;
    if (!saved) return saved.error();
    return Ok{};
  }

  Status step() {
    check_.begin_step();
    PLIMSOLL_ASSIGN(StepEvent event, trainer_.step());
    record_.add(event);
    if (const auto times = check_.end_step(event)) events_.estimate(*times);
    event.loss_mean = losses_.add(event.loss);
    const bool last = event.step == trainer_.total_steps();
    const bool due = event.step % config_.training.logging_steps == 0 ||
                     (event.step == 1 && config_.training.logging_first_step);
    if (due || last || event.skipped) {
      events_.step(event);
      folder_.step(event);
      losses_ = MeanLoss(config_.training.logging_nan_inf_filter);
      if (const auto bytes = swap_.look()) events_.swapping(event.step, *bytes);
    }
    memory_.after("step", event.step);
    if (const Tree machine = monitor_.after(event.step); !machine.is_null()) events_.event(machine);
    PLIMSOLL_TRY(hold(report_saved(/*wait=*/false), last));
    PLIMSOLL_TRY(evaluate_if_due());
    const bool saves = trainer_.config().output.save_steps > 0, ends = trainer_.is_finished();
    if (saves && (ends || trainer_.saves_after(event.step))) PLIMSOLL_TRY(hold(start_checkpoint(), ends));
    record_.resume();
    return Ok{};
  }

  /// After every training.eval_steps steps, or where an epoch ends, and after the last one.
  Status evaluate_if_due() {
    const int64_t step = trainer_.steps_done();
    const bool due = step > 0 && (step == trainer_.total_steps() || trainer_.evaluates_after(step));
    if (!due || trainer_.is_evaluated() || stop_requested() != 0) return Ok{};
    PLIMSOLL_ASSIGN(const std::optional<EvalEvent> event, trainer_.evaluate([&](int64_t done, int64_t total) {
      events_.eval_progress(done, total);
    }));
    events_.end_progress();
    memory_.after("eval", step);
    if (!event) return Ok{};
    events_.eval(*event);
    folder_.eval(*event);
    return Ok{};
  }

  /// With the history up to here: what is in flight copies the one before, so it ends first.
  Status start_checkpoint() {
    PLIMSOLL_TRY(report_saved(/*wait=*/true));
    folder_.write_state();
    return trainer_.start_checkpoint();
  }

  Status report_saved(bool wait) {
    for (;;) {
      PLIMSOLL_ASSIGN(const std::optional<SaveReport> saved, trainer_.next_saved(wait));
      if (!saved) return Ok{};
      events_.checkpoint(*saved);
      memory_.after("checkpoint", saved->step);
      saved_ = true;
    }
  }

  /// What a signal ends with: the steps done are saved.
  Status stop() {
    const int64_t step = trainer_.steps_done();
    if (step > 0 && !trainer_.is_checkpointed()) PLIMSOLL_TRY(start_checkpoint());
    PLIMSOLL_TRY(report_saved(/*wait=*/true));
    const std::string_view signal = signal_name(stop_requested());
    // Auto finds only what this process has saved, not the folder that --resume named.
    const std::string hint = options_.resume == "auto" || !saved_
                                 ? "run the same command again and it goes on from there"
                                 : "run the same command again with --resume auto and it goes on from there";
    if (step == 0)
      return Error{ErrorCode::kInterrupted,
                   fmt::format("stopped by {} before the first step", signal),
                   {},
                   "run the same command again"};
    return Error{
        ErrorCode::kInterrupted,
        fmt::format("stopped by {} after step {}, saved in {}", signal, step, trainer_.checkpoint_folder()),
        {},
        hint};
  }

  const RunConfig& config_;
  const RunOptions& options_;
  Trainer& trainer_;
  Events& events_;
  RunFolder folder_;
  RunRecord record_;
  MeanLoss losses_;
  RunMemory memory_;
  RunMonitor monitor_;
  SwapWatch swap_{swapped_bytes};
  EstimateCheck check_{trainer_};
  bool saved_ = false;            ///< a checkpoint, in this process
  std::optional<Error> unsaved_;  ///< the first save that failed at the last step
};

/// Whether the run may go on from a checkpoint, which has all that the model's folder had, or is finished.
bool needs_no_weights(const std::string& resume, const std::string& output_dir) {
  return resume == "auto" ? has_final_record(output_dir) || !find_checkpoints(output_dir).empty()
                          : resume != "never";
}

/// Whatever the run ended with; what ended it is told first.
Status write_snapshot(RunSnapshot& snapshot, const Trainer& trainer, const std::string& path,
                      Events& events) {
  PLIMSOLL_TRY(snapshot.write(trainer.session().plan()));
  const std::string left_out = snapshot.left_out();
  events.note(fmt::format("wrote {}{}: open it at pytorch.org/memory_viz", path,
                          left_out.empty() ? "" : ", " + left_out));
  return Ok{};
}

/// The day of the checkpoint that the run goes on from, or of the finished run that lies there; nothing where
/// it begins.
std::optional<std::string> date_gone_on_with(const std::string& resume, const std::string& output_dir) {
  const auto choice = choose_checkpoints(resume, output_dir);
  if (choice && !choice->candidates.empty())
    return recorded_date(choice->candidates.front().path + "/run.yaml");
  const auto final = look_at_final(output_dir);
  if (resume != "auto" || !final || *final == FinalState::kAbsent || !has_final_record(output_dir))
    return std::nullopt;
  return recorded_date(record_path(output_dir) + "/run.yaml");
}

}  // namespace

Status run_training(const RunConfig& given, const RunOptions& options) {
  const StopSignals signals(/*outlive_readers=*/true);
  const ReportSignal report_signal;
  PLIMSOLL_TRY(check_for_training(given));
  Events events(options.json);
  events.keep_lines();
  const RunConfig config = with_template_date(given, date_gone_on_with(options.resume, given.output.dir),
                                              [&](const std::string& text) { events.note(text); });
  std::unique_ptr<RunSnapshot> snapshot;
  if (!options.snapshot.empty()) {
    PLIMSOLL_ASSIGN(snapshot, RunSnapshot::create(options.snapshot));
  }
  const bool loads_weights = starts_pretrained(config.model) &&
                             (config.lora.enabled || !needs_no_weights(options.resume, config.output.dir));
  PLIMSOLL_ASSIGN(ReadyRun ready, make_ready(config, {num_threads(config), options.dump_ir}, loads_weights,
                                             options.data_progress, events));
  TrainerOptions trainer_options;
  trainer_options.data = std::move(ready.data);
  trainer_options.model_files = std::move(ready.model_files);
  trainer_options.resume = options.resume;
  trainer_options.resume_with = options.resume_with;
  trainer_options.snapshot = snapshot.get();
  trainer_options.note = [&](const std::string& text) { events.note(text); };
  PLIMSOLL_ASSIGN(const std::unique_ptr<Trainer> trainer,
                  Trainer::create(config, std::move(ready.prepared), *ready.device, trainer_options));
  if (trainer->was_finished()) {
    events.note(nothing_left(*trainer));
    if (snapshot) events.note("the snapshot is not written: no program has run");
    events.summary(RunRecord(options.process_start_seconds).summary(*trainer));
    return Ok{};
  }
  events.set_total_steps(trainer->total_steps());
  if (const std::string note = warmup_note(config.training, trainer->total_steps());
      !config.training.max_steps && !note.empty())
    events.note(note);
  if (trainer->loaded()) events.load(*trainer->loaded());
  Status ended = Run(config, options, *trainer, events)();
  if (!snapshot) return ended;
  Status written = write_snapshot(*snapshot, *trainer, options.snapshot, events);
  if (ended) return written;
  if (!written) events.note("the snapshot is not written: " + written.error().message());
  return ended;
}

}  // namespace plimsoll::train
