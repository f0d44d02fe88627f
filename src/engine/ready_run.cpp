#include "engine/ready_run.h"

#include <filesystem>
#include <utility>

#include "analysis/remedies.h"
#include "base/host.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/disk_need.h"
#include "checkpoints/final_record.h"
#include "checkpoints/load_weights.h"
#include "corpora/labelled/last_tokens.h"
#include "corpora/pad_token.h"
#include "engine/image_features.h"
#include "engine/memory_at_start.h"
#include "engine/owned_target.h"
#include "io/adapter_folder.h"
#include "preprocessing/run_data.h"
#include "strategy/card_products.h"
#include "strategy/memory_budget.h"
#include "strategy/run_card.h"
#include "strategy/run_device.h"
#include "training/model_files.h"

namespace plimsoll::engine {

namespace {

/// Whether an earlier run left checkpoints or a finished model there.
bool has_earlier_work(const std::string& output_dir) {
  return checkpoints::has_final_record(output_dir) || !checkpoints::find_checkpoints(output_dir).empty();
}

/// Tokenizing may take hours, and this a moment.
Status check_weights_of(const settings::RunConfig& config, const strategy::Prepared& prepared) {
  {
    PLIMSOLL_ASSIGN(const std::string folder, settings::model_directory(config.model));
    PLIMSOLL_ASSIGN(const io::ModelWeights weights, io::ModelWeights::open(folder));
    PLIMSOLL_TRY(checkpoints::check_weights(*prepared.model, weights, prepared.fresh_head));
  }
  trim_heap();  // headers of many tensors go back before the session takes its memory
  return Ok{};
}

/// The same where the run begins; where it goes on, what lies there is counted when it is known from where.
Status check_disk_of(const settings::RunConfig& config, const planner::PlanReport& report) {
  if (!report.disk || has_earlier_work(config.output.dir)) return Ok{};
  checkpoints::SavedBytes saved{report.disk->checkpoint_bytes, report.disk->final_bytes};
  const auto enough = [&] {
    return checkpoints::check_disk(checkpoints::save_schedule(config, config.training.max_steps, 0, saved),
                                   config.output.dir);
  };
  if (enough()) return Ok{};
  // With the small files that are beside the tensors, so that the limit which is named holds.
  constexpr int64_t kTexts = 64 << 10;
  std::error_code none;
  const auto tokenizer = preprocessing::tokenizer_path(config);
  const uintmax_t bytes = tokenizer ? std::filesystem::file_size(*tokenizer, none) : 0;
  const int64_t beside = kTexts + (none ? 0 : static_cast<int64_t>(bytes));
  saved = {saved.checkpoint + beside, saved.final + beside};
  return enough();
}

/// The tokens that a classifier's examples end with, as far as a look says, where it is to get a pad token.
Result<std::vector<int32_t>> row_ends(const strategy::Prepared& prepared,
                                      const preprocessing::RunData& data) {
  constexpr int64_t kLookedAt = 1024;
  std::vector<int32_t> all;
  if (!corpora::lacks_pad_token(prepared.model_config)) return all;
  for (const datasets::DataFiles& files : data.train)
    for (const std::string& path : files.paths) {
      PLIMSOLL_ASSIGN(const std::vector<int32_t> ends, corpora::last_tokens(path, kLookedAt));
      all.insert(all.end(), ends.begin(), ends.end());
    }
  return all;
}

/// Where the run goes on with an adapter of another model.
Status tell_of_base(const settings::RunConfig& config, telemetry::Events& events) {
  if (!config.lora.enabled || config.lora.adapter.empty() || config.model.path.empty()) return Ok{};
  PLIMSOLL_ASSIGN(const std::string folder, settings::model_directory(config.model));
  if (const auto other = io::other_base_note(config.lora.adapter, folder)) events.note(*other);
  return Ok{};
}

}  // namespace

bool loads_weights(const settings::RunConfig& config, const std::string& resume) {
  if (!settings::starts_pretrained(config.model)) return false;
  const bool continues = resume == "auto" ? has_earlier_work(config.output.dir) : resume != "never";
  return config.lora.enabled || !continues;
}

Result<ReadyRun> make_ready(const settings::RunConfig& config, const strategy::PrepareOptions& planning,
                            bool loads_weights, const preprocessing::DataProgress& progress, const Stop& stop,
                            telemetry::Events& events, runtime::Communicator* communicator) {
  std::unique_ptr<runtime::Target> target = strategy::make_target(config, planning.num_threads);
  PLIMSOLL_ASSIGN(strategy::Prepared prepared, strategy::prepare_before_data(config, *target, planning));
  PLIMSOLL_TRY(
      strategy::check_card_is_here(config));  // before anything is said of the plan, and hours of tokenizing
  const bool follows_data = config.data.buckets.given() || prepared.labels;
  analysis::add_remedies(config, *target, planning, prepared);
  if (!follows_data || !prepared.report.fits) events.plan(prepared.report, telemetry::PlanDetail::kShort);
  if (!prepared.report.fits) return strategy::does_not_fit(prepared);
  if (planning.purpose == strategy::Purpose::kTrain && !follows_data)
    PLIMSOLL_TRY(check_disk_of(config, prepared.report));
  if (loads_weights) PLIMSOLL_TRY(check_weights_of(config, prepared));
  PLIMSOLL_TRY(tell_of_base(config, events));
  // No device yet: the data is prepared by a process that must have no threads.
  PLIMSOLL_ASSIGN(
      preprocessing::RunData data,
      preprocessing::prepare_data(
          config, {.train = planning.purpose == strategy::Purpose::kTrain,
                   .vocab_size = prepared.vocab_size(),
                   .num_threads = planning.num_threads,
                   .budget_bytes = strategy::tokenizing_budget(config.memory.budget, prepared.memory),
                   .progress = progress,
                   .note = [&](const std::string& text) { events.note(text); },
                   .stop = stop}));
  if (follows_data) {
    PLIMSOLL_TRY(strategy::prepare_after_data(config, *target, planning, data, prepared));
    analysis::add_remedies(config, *target, planning, prepared);
    events.plan(prepared.report, telemetry::PlanDetail::kShort);
    if (!prepared.report.fits) return strategy::does_not_fit(prepared);
  }
  if (planning.purpose == strategy::Purpose::kTrain)
    PLIMSOLL_TRY(make_features(config, planning, prepared, data, progress, stop,
                               [&](const std::string& text) { events.note(text); }));
  checkpoints::ModelFileSet files;
  if (planning.purpose == strategy::Purpose::kTrain) {
    PLIMSOLL_ASSIGN(const std::vector<int32_t> ends, row_ends(prepared, data));
    PLIMSOLL_ASSIGN(files, training::model_files_apart(config, prepared.model_config, ends));
    for (const std::string& note : files.notes) events.note(note);
  }
  PLIMSOLL_TRY(
      check_memory_at_start(config, *target, planning, memory_now(prepared.report), prepared, events));
  if (planning.purpose == strategy::Purpose::kTrain) PLIMSOLL_TRY(strategy::keep_card_products(config));
  prepared.costs = owning(std::move(prepared.costs), std::move(target));
  PLIMSOLL_ASSIGN(auto device, strategy::make_device(config, planning.num_threads, prepared, communicator));
  return ReadyRun{std::move(device), std::move(prepared), std::move(data), std::move(files)};
}

}  // namespace plimsoll::engine
