// The subcommands, a file each. Every one adds itself to the parser and hands back what runs it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command_line.h"

namespace plimsoll::cli {

/// What the process knows before it parses anything.
struct Environment {
  double process_start_seconds = 0;  ///< steady clock
};

using Command = std::function<Status(const Environment&)>;

/// A command with arguments of its own: `declare(parser, arguments)` says which, `run(arguments)` has them.
template <typename Arguments, typename Declare, typename Run>
Command add_command(Parser parent, const std::string& name, const std::string& text, Declare declare,
                    Run run) {
  auto arguments = std::make_shared<Arguments>();
  Parser command = parent.add_subcommand(name, text);
  declare(command, *arguments);
  return [arguments, run](const Environment&) { return run(*arguments); };
}

/// Adds the subcommand to `app`; the returned function is called where it was chosen.
Command add_plan(Parser app);
Command add_train(Parser app);
Command add_eval(Parser app);
Command add_generate(Parser app);
Command add_predict(Parser app);
Command add_export(Parser app);
Command add_merge(Parser app);
Command add_quantize(Parser app);
Command add_launch(Parser app);
Command add_add_tokens(Parser app);
Command add_inspect(Parser app);
Command add_data(Parser app);
Command add_bench(Parser app);
Command add_doctor(Parser app);
Command add_calibrate(Parser app);
Command add_presets(Parser app);
Command add_report(Parser app);
Command add_watch(Parser app);
Command add_import(Parser app);
Command add_init(Parser app);
/// Both describe all that is added to `app`.
Command add_completion(Parser app);
Command add_manual(Parser app);

/// The parts of `plimsoll data`; `data` is its parser.
Command add_data_tokenizer(Parser data);
Command add_data_tokenize(Parser data);
Command add_data_cache(Parser data);
Command add_data_pack(Parser data);

/// Where a run is named: the file, the overrides, --json. Shared by plan, train, bench step.
struct RunArguments {
  std::string file;
  std::vector<std::string> overrides;
  bool json = false;
};
void add_run_arguments(Parser command, RunArguments& arguments, bool required = true);

/// Parses and runs; prints errors as "error: what: where" and "hint: …" on stderr. Returns the exit code.
int run(int argc, char** argv);

}  // namespace plimsoll::cli
