#include "training/run_loop.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "checkpoints/checkpoint.h"
#include "checkpoints/final_record.h"

namespace plimsoll::training {

std::string nothing_left(const Trainer& trainer) {
  return fmt::format(
      "nothing is left to do: {} {} steps are done and {} is complete; to train again choose another "
      "output.dir, or use --resume never, which replaces it at the end",
      trainer.steps_done() < trainer.total_steps() ? "the run stopped early," : "all", trainer.steps_done(),
      checkpoints::final_path(trainer.config().output.dir));
}

double RunLoop::MeanLoss::add(double loss, bool filter) {
  last_ = loss;
  if (std::isfinite(loss) || !filter) {
    sum_ += loss;
    ++count_;
  }
  return count_ > 0 ? sum_ / static_cast<double>(count_) : last_;
}

Status RunLoop::operator()() {
  const bool finished = trainer_.is_finished();
  PLIMSOLL_TRY(call_roll(nullptr));
  PLIMSOLL_TRY(trainer_.start_shared_parameters());
  // A signal may have come before the evaluation of the step that the run stopped after.
  PLIMSOLL_TRY(evaluate_if_due());
  while (!trainer_.is_finished()) {
    if (is_asked_to_stop()) return stop();
    if (roll_call_ != nullptr) {
      PLIMSOLL_TRY(roll_call_->decide(RankDecision::kStep));
    }
    PLIMSOLL_TRY(step());
  }
  if (is_asked_to_stop() && !trainer_.is_evaluated()) return stop();
  PLIMSOLL_TRY(hold(report_saved(/*wait=*/true), /*last=*/true));
  if (trainer_.steps_done() < trainer_.total_steps()) report_early_stop();
  if (roll_call_ != nullptr && trainer_.shares_states() && trainer_.config().training.load_best_model_at_end)
    PLIMSOLL_TRY(roll_call_->decide(RankDecision::kRestore));
  PLIMSOLL_TRY(trainer_.restore_best());
  PLIMSOLL_TRY(begin_shared_reads());
  const bool is_right = finished && trainer_.final_is_right();
  PLIMSOLL_TRY(end_shared_reads());
  if (is_right) {
    observer_.note(nothing_left(trainer_));
    return Ok{};
  }
  return save_final();
}

std::string RunLoop::stop_reason() const {
  if (is_asked(stop_)) return std::string(stop_());
  return roll_call_ == nullptr ? "" : roll_call_->stop();
}

Status RunLoop::call_roll(StepEvent* event) {
  if (roll_call_ == nullptr) return Ok{};
  PLIMSOLL_TRY(roll_call_->report(event == nullptr ? trainer_.first_report() : trainer_.report_of(*event)));
  if (event == nullptr) return Ok{};
  event->ranks = roll_call_->times();
  if (const auto slow = roll_call_->slow_rank()) observer_.note(*slow);
  return Ok{};
}

Status RunLoop::hold(Status saved, bool last) {
  if (saved || !last) return saved;
  if (!unsaved_) unsaved_ = std::move(saved).error();
  return Ok{};
}

Status RunLoop::gather_parameters() {
  if (roll_call_ == nullptr || trainer_.has_parameters()) return Ok{};
  PLIMSOLL_TRY(roll_call_->decide(RankDecision::kGather));
  return trainer_.gather_parameters();
}

Status RunLoop::begin_shared_reads() {
  PLIMSOLL_TRY(gather_parameters());
  if (roll_call_ == nullptr || !trainer_.shares_states()) return Ok{};
  PLIMSOLL_TRY(roll_call_->decide(RankDecision::kServe));
  return Ok{};
}

Status RunLoop::call_all(RankDecision decision) {
  if (roll_call_ == nullptr || !trainer_.shares_parameters()) return Ok{};
  PLIMSOLL_TRY(roll_call_->decide(decision));
  return Ok{};
}

Status RunLoop::end_shared_reads() {
  return roll_call_ == nullptr ? Status(Ok{}) : trainer_.end_shared_reads();
}

void RunLoop::report_early_stop() {
  const checkpoints::BestState best = *trainer_.best().state();
  observer_.note(fmt::format(
      "stopped early after step {}: eval_{} has not improved on {:.6g} (step {}) for {} evaluation{}",
      trainer_.steps_done(), best.metric, best.value, best.step, best.waited,
      best.waited == 1 ? "" : "s in a row"));
}

Status RunLoop::save_final() {
  PLIMSOLL_TRY(begin_shared_reads());
  const Result<checkpoints::SaveReport> saved = trainer_.save_final();
  const Status ended = end_shared_reads();
  if (saved) PLIMSOLL_TRY(ended);
  if (saved) observer_.final_saved(*saved);
  if (saved && saved->unrecorded)
    observer_.warning(saved->unrecorded->message() +
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

Status RunLoop::step() {
  const settings::TrainingSettings& training = trainer_.config().training;
  observer_.step_begins();
  PLIMSOLL_ASSIGN(StepEvent event, trainer_.step());
  PLIMSOLL_TRY(call_roll(&event));
  event.loss_mean = losses_.add(event.loss, training.logging_nan_inf_filter);
  const bool last = event.step == trainer_.total_steps();
  const bool due =
      event.step % training.logging_steps == 0 || (event.step == 1 && training.logging_first_step);
  const bool logged = due || last || event.skipped;
  if (logged) losses_ = {};
  observer_.step_ran(event, logged);
  PLIMSOLL_TRY(hold(report_saved(/*wait=*/false), last));
  PLIMSOLL_TRY(evaluate_if_due());
  const bool saves = trainer_.config().output.save_steps > 0, ends = trainer_.is_finished();
  if (saves && (ends || trainer_.saves_after(event.step))) PLIMSOLL_TRY(hold(start_checkpoint(), ends));
  observer_.step_ended();
  return Ok{};
}

Status RunLoop::evaluate_if_due() {
  const int64_t step = trainer_.steps_done();
  const bool due = step > 0 && (step == trainer_.total_steps() || trainer_.evaluates_after(step));
  if (!due || trainer_.is_evaluated() || is_asked_to_stop()) return Ok{};
  PLIMSOLL_TRY(gather_parameters());
  PLIMSOLL_TRY(call_all(RankDecision::kEvaluate));
  PLIMSOLL_ASSIGN(const std::optional<EvalEvent> event,
                  trainer_.evaluate([&](int64_t done, int64_t total) { observer_.evaluating(done, total); }));
  observer_.evaluated(step, event ? &*event : nullptr);
  return Ok{};
}

Status RunLoop::start_checkpoint() {
  PLIMSOLL_TRY(report_saved(/*wait=*/true));
  observer_.checkpoint_begins();
  PLIMSOLL_TRY(begin_shared_reads());
  Status started = trainer_.start_checkpoint();
  Status ended = end_shared_reads();
  return started ? ended : started;
}

Status RunLoop::report_saved(bool wait) {
  for (;;) {
    PLIMSOLL_ASSIGN(const std::optional<checkpoints::SaveReport> saved, trainer_.next_saved(wait));
    if (!saved) return Ok{};
    observer_.checkpoint_saved(*saved);
    saved_ = true;
    if (roll_call_ != nullptr) roll_call_->group().set_note("last checkpoint: " + saved->path);
  }
}

Status RunLoop::stop() {
  const int64_t step = trainer_.steps_done();
  if (step > 0 && !trainer_.is_checkpointed()) PLIMSOLL_TRY(start_checkpoint());
  PLIMSOLL_TRY(report_saved(/*wait=*/true));
  const std::string reason = stop_reason();
  // Auto finds only what this process has saved, not the folder that --resume named.
  const std::string hint = resume_ == "auto" || !saved_
                               ? "run the same command again to resume from there"
                               : "run the same command again with --resume auto to resume from there";
  if (step == 0)
    return Error{ErrorCode::kInterrupted,
                 fmt::format("stopped by {} before the first step", reason),
                 {},
                 "run the same command again"};
  return Error{
      ErrorCode::kInterrupted,
      fmt::format("stopped by {} after step {}, saved in {}", reason, step, trainer_.checkpoint_folder()),
      {},
      hint};
}

}  // namespace plimsoll::training
