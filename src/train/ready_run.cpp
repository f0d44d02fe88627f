#include "train/ready_run.h"

#include <malloc.h>

#include <filesystem>
#include <utility>

#include "checkpoints/checkpoint.h"
#include "checkpoints/disk_need.h"
#include "checkpoints/final_record.h"
#include "checkpoints/load_weights.h"
#include "data/labelled/last_tokens.h"
#include "data/text/pad_token.h"
#include "io/adapter_folder.h"
#include "preprocessing/run_data.h"
#include "train/memory_at_start.h"
#include "train/model_files.h"
#include "train/remedies.h"
#include "train/run_card.h"
#include "train/run_device.h"

namespace plimsoll::train {

namespace {

/// Tokenizing may take hours, and this a moment.
Status check_weights_of(const RunConfig& config, const Prepared& prepared) {
  {
    PLIMSOLL_ASSIGN(const std::string folder, model_directory(config.model));
    PLIMSOLL_ASSIGN(const ModelWeights weights, ModelWeights::open(folder));
    PLIMSOLL_TRY(check_weights(*prepared.model, weights, prepared.fresh_head ? models::Model::kScore : ""));
  }
  malloc_trim(0);  // headers of many tensors go back before the session takes its memory
  return Ok{};
}

/// The same where the run begins; where it goes on, what lies there is counted when it is known from where.
Status check_disk_of(const RunConfig& config, const planner::PlanReport& report) {
  if (!report.disk || has_final_record(config.output.dir) || !find_checkpoints(config.output.dir).empty())
    return Ok{};
  SavedBytes saved{report.disk->checkpoint_bytes, report.disk->final_bytes};
  const auto enough = [&] {
    return check_disk(save_schedule(config, config.training.max_steps, 0, saved), config.output.dir);
  };
  if (enough()) return Ok{};
  // With the small files that are beside the tensors, so that the limit which is named holds.
  constexpr int64_t kTexts = 64 << 10;
  std::error_code none;
  const auto tokenizer = tokenizer_path(config);
  const uintmax_t bytes = tokenizer ? std::filesystem::file_size(*tokenizer, none) : 0;
  const int64_t beside = kTexts + (none ? 0 : static_cast<int64_t>(bytes));
  saved = {saved.checkpoint + beside, saved.final + beside};
  return enough();
}

/// The tokens that a classifier's examples end with, as far as a look says, where it is to get a pad token.
Result<std::vector<int32_t>> row_ends(const Prepared& prepared, const RunData& data) {
  constexpr int64_t kLookedAt = 1024;
  std::vector<int32_t> all;
  if (!lacks_pad_token(prepared.model_config)) return all;
  for (const DataFiles& files : data.train)
    for (const std::string& path : files.paths) {
      PLIMSOLL_ASSIGN(const std::vector<int32_t> ends, last_tokens(path, kLookedAt));
      all.insert(all.end(), ends.begin(), ends.end());
    }
  return all;
}

/// Where the run goes on with an adapter of another model.
Status tell_of_base(const RunConfig& config, Events& events) {
  if (!config.lora.enabled || config.lora.adapter.empty() || config.model.path.empty()) return Ok{};
  PLIMSOLL_ASSIGN(const std::string folder, model_directory(config.model));
  if (const auto other = other_base_note(config.lora.adapter, folder)) events.note(*other);
  return Ok{};
}

}  // namespace

Result<ReadyRun> make_ready(const RunConfig& config, const PrepareOptions& planning, bool loads_weights,
                            const DataProgress& progress, Events& events) {
  const std::unique_ptr<runtime::Target> target = make_target(config, planning.num_threads);
  PLIMSOLL_ASSIGN(Prepared prepared, prepare_before_data(config, *target, planning));
  PLIMSOLL_TRY(check_card_is_here(config));  // before anything is said of the plan, and hours of tokenizing
  const bool follows_data = config.data.buckets.given() || prepared.labels;
  add_remedies(config, *target, planning, prepared);
  if (!follows_data || !prepared.report.fits) events.plan(prepared.report, PlanDetail::kShort);
  if (!prepared.report.fits) return does_not_fit(prepared);
  if (planning.purpose == Purpose::kTrain && !follows_data)
    PLIMSOLL_TRY(check_disk_of(config, prepared.report));
  if (loads_weights) PLIMSOLL_TRY(check_weights_of(config, prepared));
  PLIMSOLL_TRY(tell_of_base(config, events));
  // No device yet: the data is prepared by a process that must have no threads.
  PLIMSOLL_ASSIGN(RunData data,
                  prepare_data(config, {.train = planning.purpose == Purpose::kTrain,
                                        .vocab_size = prepared.model->vocab_size(),
                                        .num_threads = planning.num_threads,
                                        .progress = progress,
                                        .note = [&](const std::string& text) { events.note(text); }}));
  if (follows_data) {
    PLIMSOLL_TRY(prepare_after_data(config, *target, planning, data, prepared));
    add_remedies(config, *target, planning, prepared);
    events.plan(prepared.report, PlanDetail::kShort);
    if (!prepared.report.fits) return does_not_fit(prepared);
  }
  ModelFileSet files;
  if (planning.purpose == Purpose::kTrain) {
    PLIMSOLL_ASSIGN(const std::vector<int32_t> ends, row_ends(prepared, data));
    PLIMSOLL_ASSIGN(files, model_files_apart(config, prepared.model_config, ends));
    for (const std::string& note : files.notes) events.note(note);
  }
  PLIMSOLL_TRY(
      check_memory_at_start(config, *target, planning, memory_now(prepared.report), prepared, events));
  PLIMSOLL_ASSIGN(auto device, make_device(config, planning.num_threads, prepared.report.disk_bytes));
  return ReadyRun{std::move(device), std::move(prepared), std::move(data), std::move(files)};
}

}  // namespace plimsoll::train
