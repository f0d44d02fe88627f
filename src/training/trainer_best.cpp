// The best evaluation of a run: what it is judged by, and its model in the end.
#include <fmt/format.h>

#include <span>

#include "io/file.h"
#include "training/trainer.h"

namespace plimsoll::training {

Status Trainer::compare_evaluation(const EvalEvent& event) {
  PLIMSOLL_TRY(best_.add(event));
  const bool is_saved =
      saved_step_ == step_ ||
      (config_.output.save_steps > 0 && (saves_after(step_) || step_ == total_steps_ || best_.stops()));
  if (is_saved) best_.set_saved();
  return Ok{};
}

/// Rank 0 may be the only one that evaluates, so it says which checkpoint is the best.
Result<int64_t> Trainer::step_to_restore() {
  const std::optional<checkpoints::BestState> best = best_.state();
  int64_t step = best && best->saved_step != step_ ? best->saved_step : -1;
  if (group_ != nullptr && shares_states())
    PLIMSOLL_TRY(group_->communicator().broadcast(0, std::as_writable_bytes(std::span(&step, 1))));
  return step;
}

Status Trainer::restore_best() {
  if (!config_.training.load_best_model_at_end) return Ok{};
  if (const auto best = best_.state(); best && best->saved_step >= 0) figures_.best = best_.text();
  PLIMSOLL_ASSIGN(const int64_t step, step_to_restore());
  if (step < 0) return Ok{};
  // Beside the checkpoint that the run went on from, where it has not been saved by this process.
  std::string path = checkpoints::checkpoint_path(config_.output.dir, step);
  if (!checkpoints::is_checkpoint(path) && checkpoint_)
    path = checkpoints::checkpoint_path(io::folder_of(checkpoint_->path), step);
  auto opened = checkpoints::open_checkpoint(path);
  Status loaded = Ok{};
  if (opened)
    loaded =
        checkpoints::load_checkpoint(*opened, *prepared_.model, *session_, strategy::num_threads(config_));
  else
    loaded = std::move(opened).error();
  if (!loaded) {
    Error error = std::move(loaded).error();
    error.hint =
        "the best checkpoint cannot be read; with training.load_best_model_at_end=false final/ is the "
        "last step's";
    return error;
  }
  restored_ = std::move(*opened);
  is_gathered_ = true;
  return Ok{};
}

}  // namespace plimsoll::training
