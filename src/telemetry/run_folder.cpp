#include "telemetry/run_folder.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "base/machine_memory.h"
#include "base/process.h"
#include "io/file.h"
#include "planner/cost/known_profiles.h"
#include "settings/settings.h"
#include "telemetry/run_log.h"
#include "telemetry/run_plan.h"
#include "telemetry/trainer_state.h"
#include "training/trainer.h"

namespace plimsoll::telemetry {
namespace {

constexpr std::string_view kEnvironment = "environment.json";

io::Tree text(std::string value) { return io::Tree::of(std::move(value)); }

/// Of products in the run's precision; 0 where it is not known.
double best_flops(const planner::MachineProfile& profile, settings::Precision precision) {
  if (profile.rates == "uncalibrated" || profile.rates == planner::kUnknownRates) return 0;
  const planner::ProductType type = precision == settings::Precision::kFp32   ? planner::ProductType::kF32
                                    : precision == settings::Precision::kTf32 ? planner::ProductType::kTf32
                                    : precision == settings::Precision::kFp16 ? planner::ProductType::kF16
                                                                              : planner::ProductType::kBf16;
  const double rate = profile.product_flops[static_cast<size_t>(type)];
  // Of a card the share is that of the data sheet's peak.
  return profile.rates == "data sheet" ? rate / planner::kDataSheetProductPart : rate;
}

void set_figures(Scalars& scalars, const training::EvalEvent& e) {
  const std::string prefix = e.name.empty() ? "eval/" : "eval/" + e.name + "_";
  scalars.emplace_back(prefix + "loss", e.loss);
  for (const metrics::Value& m : e.metrics) scalars.emplace_back(prefix + std::string(m.name), m.value);
  for (const training::EvalEvent& part : e.parts) set_figures(scalars, part);
}

}  // namespace

RunFolder::RunFolder(const settings::RunConfig& config, const training::Trainer& trainer, Warn warn)
    : config_(config), trainer_(trainer), warn_(std::move(warn)) {
  const std::string events = path(kEventsFile);
  Status cut = cut_events(events, trainer.steps_done());
  check(cut, events);
  if (cut) {
    if (auto log = io::AppendFile::open(events))
      log_ = std::move(*log);
    else
      check(std::move(log).error(), events);
  }
  write_environment();
  if (!config.training.reports_to("tensorboard")) return;
  const std::string folder = config.event_folder();
  if (auto file = EventFile::create(folder, trainer.steps_done() + 1))
    event_file_ = std::move(*file);
  else
    check(std::move(file).error(), folder);
}

std::string RunFolder::path(std::string_view name) const {
  return fmt::format("{}/{}", config_.output.dir, name);
}

double RunFolder::epoch(int64_t step) const {
  return static_cast<double>(step * config_.training.global_batch_size) /
         static_cast<double>(std::max<int64_t>(1, trainer_.sequences_per_epoch()));
}

void RunFolder::check(const Status& status, const std::string& file) {
  if (!status && told_.insert(file).second)
    warn_(fmt::format("{}: the run continues without", status.error().message()));
}

void RunFolder::line(std::string_view text) {
  if (log_) check(log_->add(fmt::format("{}\n", text)), log_->path());
}

void RunFolder::step(const training::StepEvent& e) {
  if (!event_file_) return;
  Scalars scalars = {{"train/loss", e.loss_mean},
                     {"train/grad_norm", e.grad_norm},
                     {"train/learning_rate", e.learning_rate},
                     {"train/epoch", epoch(e.step)},
                     {fmt::format("train/{}_per_second", e.unit), static_cast<double>(e.units) / e.seconds},
                     {"train/data_wait_seconds", e.data_wait_seconds}};
  if (e.loss_scale) scalars.emplace_back("train/loss_scale", *e.loss_scale);
  check(event_file_->add(e.step, scalars), "event files");
}

void RunFolder::eval(const training::EvalEvent& e) {
  if (!event_file_) return;
  Scalars scalars;
  set_figures(scalars, e);
  check(event_file_->add(e.step, scalars), "event files");
}

void RunFolder::write_state(const Summary* end) {
  if (!log_) return;
  log_->flush();
  RunState state;
  state.step = trainer_.steps_done();
  state.total_steps = trainer_.total_steps();
  state.units = trainer_.units_trained();
  state.counts_tokens = trainer_.prepared().task->unit().name == tasks::kTokens.name;
  state.sequences_per_epoch = trainer_.sequences_per_epoch();
  state.micro_batch_size = trainer_.prepared().split.micro_batch_size;
  state.flops_per_step = trainer_.prepared().report.flops;
  state.best = trainer_.best().state();
  if (end != nullptr) {
    state.seconds = end->seconds;
    state.seconds_steps = end->steps;
  }
  check(write_trainer_state(path(checkpoints::kTrainerState), log_->path(), config_, state),
        path(checkpoints::kTrainerState));
}

void RunFolder::write_environment() {
  utsname system = {};
  ::uname(&system);
  const planner::PlanReport& plan = trainer_.prepared().report;
  const std::string processor = processor_name();
  const double best = best_flops(trainer_.prepared().costs->profile(), config_.training.precision);
  const io::Tree environment = io::Tree::map(
      {{"version", text(PLIMSOLL_VERSION)},
       {"commit", text(PLIMSOLL_COMMIT)},
       {"host", text(system.nodename)},
       {"system", text(fmt::format("{} {} {}", system.sysname, system.release, system.machine))},
       {"processor", text(processor.empty() ? "unknown" : processor)},
       {"cpus", io::Tree::of(int64_t{num_available_cpus()})},
       {"memory_bytes", io::Tree::of(read_machine_memory().physical_bytes)},
       {"device", text(config_.runtime.device)},
       {"instruction_set", text(std::string(trainer_.session().device().target().instruction_set()))},
       {"threads", io::Tree::of(plan.threads)},
       {"profile", text(plan.rates)},
       {"planned_peak_bytes", io::Tree::of(plan.process_peak_bytes())},
       {"best_flops", best > 0 ? io::Tree::of(best) : io::Tree{}},
       {"estimated_step_seconds", io::Tree::of(plan.seconds_estimated)},
       {"process", io::Tree::of(int64_t{::getpid()})},
       {"first_step", io::Tree::of(trainer_.steps_done() + 1)},
       {"total_steps", io::Tree::of(trainer_.total_steps())}});
  check(io::write_file_atomically(path(kEnvironment), io::to_json(environment) + "\n"), path(kEnvironment));
  check(io::write_file_atomically(path(kPlanFile),
                                  run_plan_json(run_plan(plan, trainer_.session().plan())) + "\n"),
        path(kPlanFile));
}

}  // namespace plimsoll::telemetry
