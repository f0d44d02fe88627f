#include "engine/rank_runs.h"

#include <fmt/format.h>

#include <sstream>

#include "strategy/rank_mode.h"
#include "strategy/run_device.h"
#include "training/follow.h"

namespace plimsoll::engine {
namespace {

constexpr std::string_view kFinished = "finished";

/// What rank 0 calls the others with.
struct Call {
  MachineMemory memory;
  std::string resume;
};

std::string text_of(const Call& call) {
  const MachineMemory& m = call.memory;
  return fmt::format("{} {} {}\n{}", m.physical_bytes, m.limit_bytes, m.available_bytes, call.resume);
}

Call parse_call(const std::string& text) {
  Call call;
  std::istringstream in(text);
  in >> call.memory.physical_bytes >> call.memory.limit_bytes >> call.memory.available_bytes;
  in.ignore();
  std::getline(in, call.resume);
  return call;
}

}  // namespace

strategy::PrepareOptions planning_of(const settings::RunConfig& config, const std::string& dump_ir,
                                     const ranks::Group* group) {
  strategy::PrepareOptions options{strategy::num_threads(config), dump_ir};
  if (group == nullptr) return options;
  options.memory = read_machine_memory();
  const int parts = group->launch().local_ranks;
  options.memory->limit_bytes /= parts;
  options.memory->available_bytes /= parts;
  return options;
}

Result<settings::RunConfig> with_rank_mode(const settings::RunConfig& config,
                                           const strategy::PrepareOptions& options,
                                           const std::function<void(const std::string&)>& note) {
  return strategy::with_rank_mode(config, *strategy::make_target(config, options.num_threads), options, note);
}

runtime::Communicator* communicator_of(ranks::Group* group) {
  return group == nullptr ? nullptr : &group->communicator();
}

Status begin_ranks(ranks::Group* group, const planner::PlanReport& report) {
  if (group == nullptr) return Ok{};
  group->expect_step(report.seconds_estimated);
  return group->start_watching();
}

Status call_others(ranks::Group& group, const training::Trainer& trainer, const MachineMemory& memory) {
  const std::string text =
      trainer.was_finished() ? std::string(kFinished) : text_of({memory, trainer.resumed_from()});
  PLIMSOLL_TRY(group.share(text));
  return trainer.was_finished() ? Status(Ok{}) : group.open_communicator();
}

Status follow_first(const settings::RunConfig& given, const TrainOptions& options, const Stop& stop) {
  PLIMSOLL_TRY(settings::check_for_training(given));
  ranks::Group& group = *options.group;
  PLIMSOLL_ASSIGN(const std::string text, group.share(""));
  if (text == kFinished) return Ok{};
  const Call call = parse_call(text);
  telemetry::Sink nobody;
  telemetry::Events events(nobody);
  strategy::PrepareOptions planning{strategy::num_threads(given)};
  planning.memory = call.memory;
  PLIMSOLL_ASSIGN(const settings::RunConfig config, with_rank_mode(given, planning, {}));
  PLIMSOLL_ASSIGN(ReadyRun ready, make_ready(config, planning, loads_weights(config, call.resume), {}, stop,
                                             events, &group.communicator()));
  training::TrainerOptions trainer_options;
  trainer_options.data = std::move(ready.data);
  trainer_options.model_files = std::move(ready.model_files);
  trainer_options.resume = call.resume;
  trainer_options.resume_with = options.resume_with;
  trainer_options.stop = stop;
  trainer_options.group = &group;
  trainer_options.note = [](const std::string&) {};
  PLIMSOLL_ASSIGN(
      const std::unique_ptr<training::Trainer> trainer,
      training::Trainer::create(config, std::move(ready.prepared), *ready.device, trainer_options));
  PLIMSOLL_TRY(group.open_communicator());
  training::RollCall roll_call(group);
  return training::follow(*trainer, roll_call, stop);
}

Status tell_ranks(ranks::Group& group, Status ended) {
  if (!ended) return group.fail(ended.error());
  if (group.rank() == 0) (void)training::RollCall(group).decide(training::RankDecision::kFinish);
  group.leave();
  return ended;
}

}  // namespace plimsoll::engine
