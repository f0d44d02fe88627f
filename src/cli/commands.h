// The subcommands, a file each. Every one adds itself to the parser and hands back what runs it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace CLI {
class App;
}

namespace plimsoll::cli {

/// What the process knows before it parses anything.
struct Environment {
  double process_start_seconds = 0;  ///< steady clock
};

using Command = std::function<Status(const Environment&)>;

/// Adds the subcommand to `app`; the returned function is called where it was chosen.
Command add_plan(CLI::App& app);
Command add_train(CLI::App& app);
Command add_eval(CLI::App& app);
Command add_generate(CLI::App& app);
Command add_predict(CLI::App& app);
Command add_inspect(CLI::App& app);
Command add_data(CLI::App& app);
Command add_bench(CLI::App& app);
Command add_doctor(CLI::App& app);

/// The parts of `plimsoll data`; `data` is its parser.
Command add_data_tokenizer(CLI::App& data);
Command add_data_tokenize(CLI::App& data);

/// Where a run is named: the file, the overrides, --json. Shared by plan, train, bench step.
struct RunArguments {
  std::string file;
  std::vector<std::string> overrides;
  bool json = false;
};
void add_run_arguments(CLI::App& command, RunArguments& arguments);

/// Parses and runs; prints errors as "error: what: where" and "hint: …" on stderr. Returns the exit code.
int run(int argc, char** argv);

}  // namespace plimsoll::cli
