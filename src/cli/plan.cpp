// plimsoll plan: what a run needs, without data or weights.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "train/events.h"
#include "train/trainer.h"

namespace plimsoll::cli {

Command add_plan(CLI::App& app) {
  CLI::App& command =
      *app.add_subcommand("plan", "say what a run needs: bytes by class and phase, the peak, the time");
  auto arguments = std::make_shared<RunArguments>();
  auto dump_ir = std::make_shared<std::string>();
  add_run_arguments(command, *arguments);
  command.add_option("--dump-ir", *dump_ir, "write each program's text after each pass under DIR")
      ->type_name("DIR");
  command.footer(
      "example: plimsoll plan run.yaml memory.budget=8GiB\nexit codes: 0 fits, 2 run file, 65 model files, "
      "69 does not fit");
  return [arguments, dump_ir](const Environment&) -> Status {
    PLIMSOLL_ASSIGN(const RunConfig config, load_run_config(arguments->file, arguments->overrides));
    const int threads = train::num_threads(config);
    const cpu::CpuBackend backend(threads);
    PLIMSOLL_ASSIGN(const train::Prepared prepared, train::prepare(config, backend, {threads, *dump_ir}));
    train::Events(arguments->json, 0).plan(prepared.report);
    if (!prepared.report.fits) return train::does_not_fit(config, prepared);
    return Ok{};
  };
}

}  // namespace plimsoll::cli
