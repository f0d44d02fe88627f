// The best evaluation of a run: what it is judged by, and its model in the end.
#include <fmt/format.h>

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

Status Trainer::restore_best() {
  const std::optional<checkpoints::BestState> best = best_.state();
  if (!config_.training.load_best_model_at_end || !best || best->saved_step < 0) return Ok{};
  figures_.best = best_.text();
  if (best->saved_step == step_) return Ok{};
  // Beside the checkpoint that the run went on from, where it has not been saved by this process.
  std::string path = checkpoints::checkpoint_path(config_.output.dir, best->saved_step);
  if (!checkpoints::is_checkpoint(path) && checkpoint_)
    path = checkpoints::checkpoint_path(io::folder_of(checkpoint_->path), best->saved_step);
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
