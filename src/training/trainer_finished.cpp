// A run whose folder holds a finished model already: it is this run's, and nothing is left to do, or it is
// not to be replaced unasked.
#include <fmt/format.h>

#include <filesystem>

#include "checkpoints/final_record.h"
#include "training/trainer.h"

namespace plimsoll::training {
namespace {

constexpr const char* kMoveAway =
    "choose another output.dir, or move final/ away; --resume never trains a new run and replaces it at the "
    "end";

Error refused(std::string what, const std::string& final) {
  return Error{ErrorCode::kInvalidArgument, std::move(what), final, kMoveAway};
}

Error without_record(const std::string& final, const std::string& output_dir, const Error& why) {
  if (!checkpoints::has_final_record(output_dir))
    return refused("the folder already holds a model without a record of its run", final);
  return refused(
      "the folder already holds a model, and the record of its run cannot be used (" + why.message() + ")",
      final);
}

}  // namespace

/// Reading that fails is not a difference.
Status Trainer::check_finished_model(const checkpoints::FinalRecord& record, const std::string& final) const {
  Status whole = checkpoints::check_final(record, final, strategy::num_threads(config_));
  if (whole || whole.error().code == ErrorCode::kIo) return whole;
  return refused("the finished model has been changed since the run ended (" + whole.error().message() + ")",
                 final);
}

void Trainer::take_finished(const checkpoints::FinalRecord& record) {
  const checkpoints::CheckpointManifest& m = record.run.manifest;
  finished_ = true;
  step_ = saved_step_ = m.step;
  units_ = m.tokens;
  evaluated_step_ = m.evaluated_step;
  (void)best_.resume(m.best);
}

bool Trainer::goes_on_here() const {
  std::error_code ignored;
  return !choice_.candidates.empty() &&
         std::filesystem::equivalent(io::folder_of(choice_.candidates.front().path), config_.output.dir,
                                     ignored);
}

Status Trainer::guard_final(const TrainerOptions& options) {
  const std::string& folder = config_.output.dir;
  const std::string final = checkpoints::final_path(folder);
  PLIMSOLL_ASSIGN(const checkpoints::FinalState state, checkpoints::look_at_final(folder));
  if (state == checkpoints::FinalState::kAbsent) return Ok{};
  const Result<checkpoints::FinalRecord> record =
      checkpoints::open_final_record(checkpoints::record_path(folder));
  if (!record && record.error().code == ErrorCode::kIo) return record.error();
  if (!record && state == checkpoints::FinalState::kOther)
    return Error{ErrorCode::kInvalidArgument, "the model would replace something that is not a model", final,
                 "choose another output.dir, or move it away"};
  if (options.resume == "never") {
    options.note(final + " stays until this run is finished and is then replaced");
    return Ok{};
  }
  // What a run goes on from is compared with it in its own right.
  const bool here = goes_on_here(), offloaded = !here && !choice_.candidates.empty();
  Status same = record ? checkpoints::check_finished_run(record->run, config_, prepared_.model_config,
                                                         manifest_, offloaded)
                       : Status(without_record(final, folder, record.error()));
  if (offloaded) return same;
  const bool outlived = here && (choice_.only_this ||
                                 choice_.candidates.front().step >= (record ? record->run.manifest.step : 0));
  if (outlived || (here && !same)) return Ok{};
  PLIMSOLL_TRY(same);
  Status whole = check_finished_model(*record, final);
  if (whole) take_finished(*record);
  return here ? Status(Ok{}) : whole;
}

}  // namespace plimsoll::training
