#include "train/ready_run.h"

#include <utility>

#include "train/model_files.h"
#include "train/run_device.h"

namespace plimsoll::train {

Result<ReadyRun> make_ready(const RunConfig& config, const PrepareOptions& planning,
                            const DataProgress& progress, Events& events) {
  const std::unique_ptr<runtime::Target> target = make_target(config, planning.num_threads);
  PLIMSOLL_ASSIGN(Prepared prepared, prepare_before_data(config, *target, planning));
  const bool follows_data = config.data.buckets.given() || prepared.labels;
  if (!follows_data || !prepared.report.fits) events.plan(prepared.report);
  if (!prepared.report.fits) return does_not_fit(prepared);
  // No device yet: the data is prepared by a process that must have no threads.
  PLIMSOLL_ASSIGN(RunData data,
                  prepare_data(config, {.train = planning.purpose == Purpose::kTrain,
                                        .vocab_size = prepared.model->vocab_size(),
                                        .num_threads = planning.num_threads,
                                        .progress = progress,
                                        .note = [&](const std::string& text) { events.note(text); }}));
  if (follows_data) {
    PLIMSOLL_TRY(prepare_after_data(config, *target, planning, data, prepared));
    events.plan(prepared.report);
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
