#include <fmt/format.h>

#include <optional>
#include <utility>

#include "checkpoints/checkpoint.h"
#include "checkpoints/checkpoint_resume.h"
#include "checkpoints/final_record.h"
#include "engine/engine.h"
#include "engine/rank_runs.h"
#include "io/file.h"
#include "io/new_folder.h"
#include "preprocessing/template_date.h"
#include "settings/schedule.h"
#include "telemetry/run_observer.h"
#include "telemetry/run_snapshot.h"
#include "training/run_loop.h"
#include "training/trainer.h"

namespace plimsoll::engine {
namespace {

/// Whatever the run ended with; what ended it is told first.
Status write_snapshot(telemetry::RunSnapshot& snapshot, const training::Trainer& trainer,
                      const std::string& path, telemetry::Events& events) {
  PLIMSOLL_TRY(snapshot.write(trainer.session().plan()));
  const std::string left_out = snapshot.left_out();
  events.note(fmt::format("wrote {}{}: open it at pytorch.org/memory_viz", path,
                          left_out.empty() ? "" : ", " + left_out));
  return Ok{};
}

/// The day of the checkpoint that the run goes on from, or of the finished run that lies there; nothing where
/// it begins.
std::optional<std::string> date_gone_on_with(const std::string& resume, const std::string& output_dir) {
  const auto choice = checkpoints::choose_checkpoints(resume, output_dir);
  if (choice && !choice->candidates.empty())
    return preprocessing::recorded_date(choice->candidates.front().path + "/run.yaml");
  const auto final = checkpoints::look_at_final(output_dir);
  if (resume != "auto" || !final || *final == checkpoints::FinalState::kAbsent ||
      !checkpoints::has_final_record(output_dir))
    return std::nullopt;
  return preprocessing::recorded_date(checkpoints::record_path(output_dir) + "/run.yaml");
}

/// What cannot be written is found before the data are made ready, not hours later.
Status check_folders(const settings::RunConfig& config) {
  PLIMSOLL_TRY(io::create_writable_directory(config.output.dir));
  return config.debug.dump_dir.empty() ? Status(Ok{}) : io::create_writable_directory(config.debug.dump_dir);
}

/// Runs the steps with all that watches them. What the run has reported so far outlives its failure too.
Status run_steps(const settings::RunConfig& config, const TrainOptions& options, const Stop& stop,
                 training::Trainer& trainer, telemetry::Events& events, training::RollCall* roll_call) {
  telemetry::RunObserver observer(config, trainer, events, options.process_start_seconds,
                                  options.memory_summary, options.memory_asked);
  Status ended = training::RunLoop(trainer, observer, options.resume, stop, roll_call)();
  if (ended)
    observer.run_ended();
  else if (ended.error().code != ErrorCode::kInterrupted)
    observer.run_failed();
  return ended;
}

}  // namespace

Status Engine::train(const settings::RunConfig& given, const TrainOptions& options) {
  if (options.group == nullptr) return train_one(given, options);
  ranks::Group& group = *options.group;
  Status ended = group.rank() == 0 ? train_one(given, options) : follow_first(given, options, stop_);
  return tell_ranks(group, std::move(ended));
}

Status Engine::train_one(const settings::RunConfig& given, const TrainOptions& options) {
  PLIMSOLL_TRY(settings::check_for_training(given));
  telemetry::Events events(sink_);
  events.keep_lines();
  const auto tell = [&](const std::string& text) { events.note(text); };
  const settings::RunConfig dated =
      preprocessing::with_template_date(given, date_gone_on_with(options.resume, given.output.dir), tell);
  const io::NewFolder output(given.output.dir), dumps(given.debug.dump_dir);  // none is left empty
  PLIMSOLL_TRY(check_folders(given));
  std::unique_ptr<telemetry::RunSnapshot> snapshot;
  if (!options.snapshot.empty()) {
    PLIMSOLL_ASSIGN(snapshot, telemetry::RunSnapshot::create(options.snapshot));
  }
  const strategy::PrepareOptions planning = planning_of(dated, options.dump_ir, options.group);
  PLIMSOLL_ASSIGN(const settings::RunConfig config, with_rank_mode(dated, planning, tell));
  PLIMSOLL_ASSIGN(ReadyRun ready,
                  make_ready(config, planning, loads_weights(config, options.resume), options.data_progress,
                             stop_, events, communicator_of(options.group)));
  PLIMSOLL_TRY(begin_ranks(options.group, ready.prepared.report));
  training::TrainerOptions trainer_options;
  trainer_options.data = std::move(ready.data);
  trainer_options.model_files = std::move(ready.model_files);
  trainer_options.resume = options.resume;
  trainer_options.resume_with = options.resume_with;
  trainer_options.programs = snapshot.get();
  trainer_options.stop = stop_;
  trainer_options.group = options.group;
  trainer_options.note = tell;
  PLIMSOLL_ASSIGN(
      const std::unique_ptr<training::Trainer> trainer,
      training::Trainer::create(config, std::move(ready.prepared), *ready.device, trainer_options));
  if (options.group != nullptr) PLIMSOLL_TRY(call_others(*options.group, *trainer, *planning.memory));
  if (trainer->was_finished()) {
    events.note(training::nothing_left(*trainer));
    if (snapshot) events.note("no snapshot is written: no program has run");
    events.summary(telemetry::RunRecord(options.process_start_seconds).summary(*trainer));
    return Ok{};
  }
  events.set_total_steps(trainer->total_steps());
  if (const std::string note = settings::warmup_note(config.training, trainer->total_steps());
      !config.training.max_steps && !note.empty())
    events.note(note);
  if (trainer->loaded()) events.load(*trainer->loaded());
  std::optional<training::RollCall> roll_call;
  if (options.group != nullptr) roll_call.emplace(*options.group);
  Status ended = run_steps(config, options, stop_, *trainer, events, roll_call ? &*roll_call : nullptr);
  if (!snapshot) return ended;
  Status written = write_snapshot(*snapshot, *trainer, options.snapshot, events);
  if (ended) return written;
  if (!written) events.note("the snapshot is not written: " + written.error().message());
  return ended;
}

}  // namespace plimsoll::engine
