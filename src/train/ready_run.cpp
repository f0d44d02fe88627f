#include "train/ready_run.h"

#include <malloc.h>

#include <utility>

#include "checkpoints/load_weights.h"
#include "train/model_files.h"
#include "train/remedies.h"
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

}  // namespace

Result<ReadyRun> make_ready(const RunConfig& config, const PrepareOptions& planning, bool loads_weights,
                            const DataProgress& progress, Events& events) {
  const std::unique_ptr<runtime::Target> target = make_target(config, planning.num_threads);
  PLIMSOLL_ASSIGN(Prepared prepared, prepare_before_data(config, *target, planning));
  const bool follows_data = config.data.buckets.given() || prepared.labels;
  add_remedies(config, *target, planning, prepared);
  if (!follows_data || !prepared.report.fits) events.plan(prepared.report, PlanDetail::kShort);
  if (!prepared.report.fits) return does_not_fit(prepared);
  if (loads_weights) PLIMSOLL_TRY(check_weights_of(config, prepared));
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
  std::vector<ModelFile> files;
  if (planning.purpose == Purpose::kTrain) {
    PLIMSOLL_ASSIGN(files, model_files_apart(config, prepared.model_config));
  }
  PLIMSOLL_ASSIGN(auto device, make_device(config, planning.num_threads));
  return ReadyRun{std::move(device), std::move(prepared), std::move(data), std::move(files)};
}

}  // namespace plimsoll::train
