// plimsoll init: a run file for a model and data, planned before it is written.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "base/process.h"
#include "base/terminal.h"
#include "cli/commands.h"
#include "io/file.h"
#include "planner/verdict.h"
#include "train/propose_run.h"

namespace plimsoll::cli {
namespace {

struct Arguments {
  std::string model;
  std::vector<std::string> data;
  std::string output = "run.yaml";
  std::string tokenizer, output_dir;
  bool force = false;
};

void declare(Parser command, Arguments& a) {
  command.add_option("--model", a.model, "a model directory, a hub id in the local cache, or a preset")
      .required()
      .type_name("DIR");
  command.add_option("--data", a.data, "training data: text, JSON lines, tokens; files or globs")
      .required()
      .type_name("FILE");
  command.add_option("--tokenizer", a.tokenizer, "in place of the model's: a folder or a tokenizer.json")
      .type_name("DIR");
  command.add_option("--output", a.output, "the run file to write; - for stdout")
      .type_name("RUN.yaml")
      .show_default();
  command
      .add_option("--output-dir", a.output_dir,
                  "output.dir of the run; runs/<model>-<data> where it is not given")
      .type_name("DIR");
  command.add_flag("--force", a.force, "replace a run file that is there");
  command.footer(
      "example: plimsoll init --model HuggingFaceTB/SmolLM2-135M --data chats.jsonl\n"
      "         plimsoll train run.yaml\n"
      "         plimsoll generate --model runs/SmolLM2-135M-chats --prompt \"Hello\"");
}

Status run_init(const Arguments& a) {
  std::error_code ignored;
  if (a.output != "-" && !a.force && std::filesystem::exists(a.output, ignored))
    return Error{ErrorCode::kInvalidArgument, "the file is there already", a.output,
                 "name another with --output, or replace it with --force"};
  PLIMSOLL_ASSIGN(const train::RunProposal proposal,
                  train::propose_run({a.model, a.data, a.tokenizer, a.output_dir, num_available_cpus()}));
  if (a.output == "-") {
    std::fputs(proposal.yaml.c_str(), stdout);
    return Ok{};
  }
  PLIMSOLL_TRY(write_file_atomically(a.output, proposal.yaml));
  std::string text = planner::verdict(proposal.report);
  text += fmt::format("wrote {}; next:\n  plimsoll plan {}     what is used where\n  plimsoll train {}\n",
                      a.output, a.output, a.output);
  print_text(text);
  return Ok{};
}

}  // namespace

Command add_init(Parser app) {
  return add_command<Arguments>(app, "init", "write a run file for a model and data, planned", declare,
                                run_init);
}

}  // namespace plimsoll::cli
