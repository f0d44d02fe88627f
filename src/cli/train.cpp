// plimsoll train: plan, then run.
#include <memory>

#include "cli/commands.h"
#include "cli/load_run.h"
#include "cli/progress.h"
#include "settings/settings.h"
#include "train/trainer.h"

namespace plimsoll::cli {

Command add_train(Parser app) {
  Parser command = app.add_subcommand("train", "plan a run and train it");
  auto arguments = std::make_shared<RunArguments>();
  auto dump_ir = std::make_shared<std::string>();
  add_run_arguments(command, *arguments);
  command.add_option("--dump-ir", *dump_ir, "write each program's text after each pass under DIR")
      .type_name("DIR");
  auto resume = std::make_shared<std::string>("auto");
  command
      .add_option(
          "--resume", *resume,
          "auto: go on from the newest intact checkpoint of output.dir; never; or a checkpoint's folder")
      .type_name("auto|never|DIR")
      .show_default();
  command.footer([] {
    return "example: plimsoll train run.yaml training.learning_rate=1e-4\n"
           "exit codes: 0 done, 2 run file, 65 data or model files, 69 does not fit, 74 I/O,\n"
           "            75 stopped by a signal (TERM, INT, HUP, USR1) and saved (run it again), 76 "
           "diverged\n\n"
           "settings of the run file, as dotted.path=value on the command line:\n" +
           settings_help();
  });
  return [arguments, dump_ir, resume](const Environment& environment) -> Status {
    PLIMSOLL_ASSIGN(const RunConfig config, load_run(*arguments));
    Progress progress;
    return train::run_training(config, {.json = arguments->json,
                                        .dump_ir = *dump_ir,
                                        .resume = *resume,
                                        .process_start_seconds = environment.process_start_seconds,
                                        .data_progress = shown_by(progress)});
  };
}

}  // namespace plimsoll::cli
