// plimsoll eval: the loss of a model on data.eval.
#include <memory>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/load_run.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "engine/engine.h"
#include "io/tree.h"

namespace plimsoll::cli {

Command add_eval(Parser app) {
  Parser command = app.add_subcommand("eval", "compute loss and perplexity of a model on data.eval");
  auto arguments = std::make_shared<RunArguments>();
  auto dump_ir = std::make_shared<std::string>();
  add_run_arguments(command, *arguments);
  command.add_option("--dump-ir", *dump_ir, "write the text of each program after each pass to this folder")
      .type_name("DIR");
  auto adapter = std::make_shared<std::string>();
  command.add_option("--adapter", *adapter, "LoRA adapter of the model (a PEFT directory), as lora.adapter")
      .type_name("DIR");
  command.footer(
      "examples: plimsoll eval run.yaml model.path=runs/one/final\n"
      "          plimsoll eval run.yaml --adapter runs/lora/final\n"
      "          plimsoll eval run.yaml data.eval=other.npy --json\n"
      "exit codes: 0 done, 2 run file, 65 data or model files, 69 does not fit, 74 I/O,\n"
      "            75 stopped by a signal");
  return [arguments, dump_ir, adapter](const Environment&) -> Status {
    if (!adapter->empty())  // in place of what the file says of adapters
      for (const std::string& lora :
           {std::string("lora=null"), "lora.adapter=" + io::to_json(io::Tree::of(*adapter))})
        arguments->overrides.push_back(lora);
    PLIMSOLL_ASSIGN(const settings::RunConfig config, load_run(*arguments, settings::RunUse::kEvaluation));
    const StopSignals signals(/*outlive_readers=*/false);
    Progress progress;
    Console console(arguments->json);
    return engine::Engine(console, stop_reason)
        .evaluate(config, {.dump_ir = *dump_ir, .data_progress = shown_by(progress)});
  };
}

}  // namespace plimsoll::cli
