#include "cli/profile/profile.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "cli/console.h"
#include "cli/explain/explain_memory.h"
#include "cli/load_run.h"
#include "cli/profile/profile_formats.h"
#include "cli/profile/profile_ladder.h"
#include "cli/profile/profile_queues.h"
#include "cli/profile/profile_run.h"
#include "cli/profile/profile_text.h"
#include "cli/profile/timeline_chart.h"
#include "cli/terminal.h"
#include "io/file.h"
#include "planner/report/timeline_svg.h"
#include "profiling/profile_trace.h"
#include "telemetry/estimate_check.h"

namespace plimsoll::cli {
namespace {

constexpr int64_t kMostSteps = 100'000;

struct ProfileArguments {
  RunArguments run;
  profiling::ProfileSchedule schedule;
  std::string output = "profile";
  std::string by = std::string(profiling::kProfileByNames[0]);
  bool memory = false, ladder = false, queues = false, formats = false;
};

profiling::ProfileBy by_of(const std::string& name) {
  const auto* const found = std::ranges::find(profiling::kProfileByNames, name);
  return static_cast<profiling::ProfileBy>(found - std::begin(profiling::kProfileByNames));
}

/// Planned and measured, laid over each other: memory.json, memory.svg, and on the terminal.
Status write_memory(const profiling::Profile& profile, const engine::OpenRun& run,
                    const ProfileArguments& arguments) {
  const passes::SessionPlan& session = run.trainer->session().plan();
  const planner::PlanReport& report = run.trainer->prepared().report;
  const auto beside = bytes_beside(report);
  int64_t beside_bytes = report.device_is_process ? 0 : report.overhead_bytes;
  for (const auto& [name, bytes] : beside) beside_bytes += bytes;
  const planner::MemoryTimeline timeline = measured_timeline(profile, session, beside_bytes);
  const io::Tree event = timeline_event(
      timeline, memory_formula(session, timeline, run.trainer->prepared().split.micro_batch_size, beside));
  PLIMSOLL_TRY(io::write_file_atomically(arguments.output + "/memory.json", io::to_json(event) + "\n"));
  PLIMSOLL_TRY(io::write_file_atomically(
      arguments.output + "/memory.svg",
      timeline_svg(timeline, fmt::format("{}: bytes alive while {} runs, planned and measured", report.model,
                                         timeline.program))));
  if (arguments.run.json) {
    fmt::print("{}\n", io::to_json(event));
    return Ok{};
  }
  const int columns = terminal_columns(STDOUT_FILENO);
  print_text(fmt::format(
      "Memory while {} runs, planned by class and measured (*)\n\n{}\n{}\n", timeline.program,
      timeline_chart(timeline, columns == 0 ? 80 : std::min(columns, 120)), timeline_legend(timeline)));
  return Ok{};
}

Status write_profile(const profiling::Profile& profile, const ProfileArguments& arguments) {
  const std::string& folder = arguments.output;
  PLIMSOLL_TRY(io::write_file_atomically(folder + "/ops.json", io::to_json(profile_ops(profile)) + "\n"));
  PLIMSOLL_TRY(
      io::write_file_atomically(folder + "/verdict.json", io::to_json(diagnosis_event(profile)) + "\n"));
  return io::write_file_atomically(folder + "/trace.json", profiling::profile_trace(profile));
}

Status run_profile(const ProfileArguments& arguments) {
  if (arguments.schedule.num_steps() > kMostSteps)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the schedule has {} steps", arguments.schedule.num_steps()),
                 {},
                 "lower --repeat, --active, --wait, --warmup or --skip-first"};
  PLIMSOLL_TRY(io::create_writable_directory(arguments.output));
  const ScratchRun scratch(arguments.output);
  PLIMSOLL_ASSIGN(const settings::RunConfig config, load_run(arguments.run));
  if (arguments.ladder) return climb_ladder(config, arguments.schedule, scratch.path, arguments.run.json);
  if (arguments.formats) return profile_formats(config, arguments.schedule, scratch.path, arguments.run.json);
  Console console(arguments.run.json);
  PLIMSOLL_ASSIGN(const auto run,
                  open_run(short_run(config, arguments.schedule.num_steps(), scratch.path), console));
  if (arguments.queues) return profile_queues(*run, arguments.schedule, arguments.output, arguments.run.json);
  PLIMSOLL_ASSIGN(profiling::Profile profile,
                  profiling::profile_steps(*run->trainer, {.schedule = arguments.schedule,
                                                           .memory = arguments.memory,
                                                           .saves = !config.data.train.empty()}));
  profile.padded_units = run->trainer->prepared().report.units;
  telemetry::OpMedians last(1);
  last.add(run->trainer->session());
  PLIMSOLL_TRY(io::write_file_atomically(
      arguments.output + "/estimate.json",
      io::to_json(planner::step_times_event(telemetry::step_times(*run->trainer, last))) + "\n"));
  PLIMSOLL_TRY(write_profile(profile, arguments));
  if (arguments.memory) PLIMSOLL_TRY(write_memory(profile, *run, arguments));
  if (arguments.run.json)
    fmt::print("{}\n", io::to_json(diagnosis_event(profile)));
  else
    print_text(profile_table(profile, by_of(arguments.by), terminal_columns(STDOUT_FILENO)) + "\n" +
               profile_verdict(profile));
  return Ok{};
}

void add_schedule(Parser command, profiling::ProfileSchedule& schedule) {
  command.add_option("--wait", schedule.wait, "steps to skip in each cycle")
      .range(0, kMostSteps)
      .show_default();
  command.add_option("--warmup", schedule.warmup, "warm-up steps that are not recorded")
      .range(0, kMostSteps)
      .show_default();
  command.add_option("--active", schedule.active, "steps that are recorded")
      .range(1, kMostSteps)
      .show_default();
  command.add_option("--skip-first", schedule.skip_first, "steps to skip before the first cycle")
      .range(0, kMostSteps)
      .show_default();
  command.add_option("--repeat", schedule.repeat, "number of cycles of wait, warmup and active")
      .range(1, kMostSteps)
      .show_default();
}

}  // namespace

Command add_profile(Parser app) {
  Parser command =
      app.add_subcommand("profile", "show where the time of a step goes: a trace, a table, a verdict");
  auto arguments = std::make_shared<ProfileArguments>();
  add_run_arguments(command, arguments->run);
  add_schedule(command, arguments->schedule);
  command.add_option("--output", arguments->output, "folder of trace.json and ops.json")
      .type_name("DIR")
      .show_default();
  command.add_option("--by", arguments->by, "rows of the table")
      .one_of({std::begin(profiling::kProfileByNames), std::end(profiling::kProfileByNames)})
      .show_default();
  command.add_flag("--memory", arguments->memory,
                   "record planned and measured memory op by op in memory.json and memory.svg");
  command.add_flag("--ladder", arguments->ladder,
                   "instead of a trace, try settings that could make a step faster, each in short runs");
  command.add_flag("--queues", arguments->queues,
                   "record which copies overlap with kernels in training, in queues.json");
  command.add_flag(
      "--formats", arguments->formats,
      "instead of a trace, show what number formats would do to the operands of each linear layer");
  command.footer(
      "example: plimsoll profile run.yaml --active 5 --output profile\n"
      "trace.json opens at ui.perfetto.dev; the run's own folder is left alone");
  return [arguments](const Environment&) { return run_profile(*arguments); };
}

}  // namespace plimsoll::cli
