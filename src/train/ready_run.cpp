#include "train/ready_run.h"

#include <utility>

namespace plimsoll::train {

Result<ReadyRun> make_ready(const RunConfig& config, const PrepareOptions& planning,
                            const DataProgress& progress, Events& events) {
  auto backend = std::make_unique<cpu::CpuBackend>(planning.num_threads);
  PLIMSOLL_ASSIGN(Prepared prepared, prepare_before_data(config, *backend, planning));
  const bool follows_data = config.data.buckets.given();
  if (!follows_data || !prepared.report.fits) events.plan(prepared.report);
  if (!prepared.report.fits) return does_not_fit(config, prepared);
  backend.reset();  // its threads: the data is prepared by a process that must have none
  PLIMSOLL_ASSIGN(RunData data,
                  prepare_data(config, {.train = planning.purpose == Purpose::kTrain,
                                        .vocab_size = prepared.model->vocab_size(),
                                        .num_threads = planning.num_threads,
                                        .progress = progress,
                                        .note = [&](const std::string& text) { events.note(text); }}));
  backend = std::make_unique<cpu::CpuBackend>(planning.num_threads);
  if (follows_data) {
    PLIMSOLL_TRY(prepare_after_data(config, *backend, planning, data.buckets, prepared));
    events.plan(prepared.report);
    if (!prepared.report.fits) return does_not_fit(config, prepared);
  }
  return ReadyRun{std::move(backend), std::move(prepared), std::move(data)};
}

}  // namespace plimsoll::train
