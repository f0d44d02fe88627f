// The command line's frame: parsing, errors, exit codes.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "backends/cpu/kernels/isa.h"
#include "cli/commands.h"
#include "train/trainer.h"

namespace plimsoll::cli {
namespace {

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return 2;
    case ErrorCode::kBadData:
      return 65;
    case ErrorCode::kDoesNotFit:
      return 69;
    case ErrorCode::kIo:
      return 74;
    case ErrorCode::kInterrupted:
      return 75;
    case ErrorCode::kDiverged:
      return 76;
  }
  return 2;
}

int report(const Error& error) {
  std::fflush(stdout);
  std::fprintf(stderr, "error: %s\n", error.message().c_str());
  if (!error.hint.empty()) std::fprintf(stderr, "hint: %s\n", error.hint.c_str());
  return exit_code(error.code);
}

constexpr const char* kFooter = R"(examples:
  plimsoll plan run.yaml                              what a run needs, before it starts
  plimsoll plan run.yaml model.preset=llama-3-8b      the same for a public model, without files
  plimsoll train run.yaml training.max_steps=100      later key=value win over the file
  plimsoll train run.yaml --json > events.jsonl       one JSON object a line
  plimsoll bench offsets cases/*.csv                  the offset search on recorded lifetimes
  plimsoll doctor                                     this machine: what is fast, what is missing
)";

}  // namespace

void add_run_arguments(CLI::App& command, RunArguments& arguments) {
  command.add_option("run", arguments.file, "the run file (YAML)")->required()->type_name("RUN.yaml");
  command.add_option("overrides", arguments.overrides, "settings over the file: dotted.path=yaml value")
      ->type_name("key=value");
  command.add_flag("--json", arguments.json, "one JSON object a line on stdout and nothing else");
}

int run(int argc, char** argv) {
  const Environment environment{train::now_seconds()};
  if (const auto isa = cpu::select_isa(std::getenv("PLIMSOLL_ISA")); !isa) return report(isa.error());
  CLI::App app{
      "Plimsoll trains neural networks inside the memory at hand: it says the peak first, to the byte."};
  app.set_version_flag("--version", "plimsoll " PLIMSOLL_VERSION);
  app.footer(kFooter);
  app.require_subcommand(1);
  const std::pair<const char*, Command> commands[] = {{"plan", add_plan(app)},
                                                      {"train", add_train(app)},
                                                      {"bench", add_bench(app)},
                                                      {"doctor", add_doctor(app)}};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    // The parser's one way to report; help and version come through here too.
    if (e.get_exit_code() == 0) return app.exit(e);
    return report(
        {ErrorCode::kInvalidArgument, e.what(), {}, "see plimsoll --help, or plimsoll COMMAND --help"});
  }
  try {
    for (const auto& [name, command] : commands)
      if (app.got_subcommand(name)) {
        const Status status = command(environment);
        return status ? 0 : report(status.error());
      }
  } catch (const std::bad_alloc&) {
    return report({ErrorCode::kIo,
                   "the operating system refused memory",
                   {},
                   "close other programs or lower memory.budget"});
  }
  return 2;
}

}  // namespace plimsoll::cli
