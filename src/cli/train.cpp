// plimsoll train: plan, then run.
#include <memory>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/explain/plan_more.h"
#include "cli/join_ranks.h"
#include "cli/load_run.h"
#include "cli/progress.h"
#include "cli/report_signal.h"
#include "cli/signals.h"
#include "engine/engine.h"
#include "settings/settings.h"

namespace plimsoll::cli {

namespace {

/// The settings that `overrides` give, which a run may change where it goes on. Errors: kInvalidArgument.
Result<std::vector<std::string>> settings_of_rate(const std::vector<std::string>& overrides) {
  std::vector<std::string> paths;
  for (const std::string& text : overrides) {
    PLIMSOLL_ASSIGN(const std::vector<std::string> given, settings::settings_of_override(text));
    for (const std::string& path : given) {
      const settings::Setting* setting = settings::find_setting(path);
      if (setting == nullptr || !setting->is_of_rate)
        return Error{
            ErrorCode::kInvalidArgument,
            "--resume-with takes the learning rate and its schedule, not " + path, text,
            "another value is another run: start a new run with --resume never or another output.dir"};
      paths.push_back(path);
    }
  }
  return paths;
}

}  // namespace

Command add_train(Parser app) {
  Parser command = app.add_subcommand("train", "plan a run and train it");
  auto arguments = std::make_shared<RunArguments>();
  auto dump_ir = std::make_shared<std::string>();
  add_run_arguments(command, *arguments);
  command.add_option("--dump-ir", *dump_ir, "write the text of each program after each pass to this folder")
      .type_name("DIR");
  auto snapshot = std::make_shared<std::string>();
  command
      .add_option("--snapshot", *snapshot,
                  "write the actual allocations as a memory snapshot for pytorch.org/memory_viz")
      .type_name("FILE");
  auto memory_summary = std::make_shared<int64_t>(0);
  command
      .add_option("--memory-summary", *memory_summary,
                  "print planned and used memory every N steps; SIGUSR2 prints it at any time")
      .type_name("N")
      .range(1, int64_t{1} << 40);
  auto resume = std::make_shared<std::string>("auto");
  command
      .add_option("--resume", *resume,
                  "auto: resume from the newest intact checkpoint of output.dir; never; or the folder of a "
                  "checkpoint")
      .type_name("auto|never|DIR")
      .show_default();
  auto resume_with = std::make_shared<std::vector<std::string>>();
  command
      .add_option("--resume-with", *resume_with,
                  "resume with another learning rate or schedule than the checkpoint's")
      .repeatable()
      .type_name("KEY=VALUE");
  command.footer([] {
    return "example: plimsoll train run.yaml training.learning_rate=1e-4\n"
           "         plimsoll train run.yaml --resume-with training.learning_rate=1e-4   from the last "
           "checkpoint on\n"
           "exit codes: 0 done, 2 run file, 65 data or model files, 69 does not fit, 74 I/O,\n"
           "            75 stopped by a signal (TERM, INT, HUP, USR1) and saved (run it again), 76 "
           "diverged\n"
           "            or, with debug.verify_steps, computed wrongly\n\n"
           "settings of the run file, as dotted.path=value on the command line:\n" +
           settings::settings_help();
  });
  return [arguments, dump_ir, snapshot, memory_summary, resume,
          resume_with](const Environment& environment) -> Status {
    const Result<std::vector<std::string>> changing = settings_of_rate(*resume_with);
    arguments->overrides.insert(arguments->overrides.end(), resume_with->begin(), resume_with->end());
    const StopSignals signals(/*outlive_readers=*/true);
    PLIMSOLL_ASSIGN(const std::unique_ptr<ranks::Group> group, join_ranks(*arguments));
    auto loaded = load_run(*arguments, settings::RunUse::kTraining, group && group->rank() > 0);
    if (!changing || !loaded) {
      const Error& error = changing ? loaded.error() : changing.error();
      return group ? group->fail(error) : error;
    }
    PLIMSOLL_ASSIGN(const settings::RunConfig config,
                    with_chosen_batch(*loaded, /*shows=*/false, arguments->json));
    const ReportSignal report_signal;
    Progress progress;
    Console console(arguments->json);
    return engine::Engine(console, stop_reason)
        .train(config, {.dump_ir = *dump_ir,
                        .resume = *resume,
                        .resume_with = *changing,
                        .memory_summary = *memory_summary,
                        .memory_asked = ReportSignal::take,
                        .snapshot = *snapshot,
                        .process_start_seconds = environment.process_start_seconds,
                        .data_progress = shown_by(progress),
                        .group = group.get()});
  };
}

}  // namespace plimsoll::cli
