// plimsoll init: a run file for a model and data, planned before it is written.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <optional>
#include <utility>

#include "analysis/propose_run.h"
#include "base/process.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "io/check_writable.h"
#include "io/file.h"
#include "planner/report/headline.h"

namespace plimsoll::cli {
namespace {

struct InitArguments {
  std::string model;
  std::vector<std::string> data;
  std::string output = "run.yaml";
  std::string tokenizer, output_dir, lora;
  std::vector<std::string> overrides;
  bool force = false;
};

void declare(Parser command, InitArguments& a) {
  command.add_option("--model", a.model, "a model directory, a Hub id that is already cached, or a preset")
      .required()
      .type_name("DIR");
  command.add_option("--data", a.data, "training data: text, JSON lines, tokens; files or globs")
      .required()
      .type_name("FILE");
  command
      .add_option("--tokenizer", a.tokenizer,
                  "tokenizer instead of the model's: a folder or a tokenizer.json")
      .type_name("DIR");
  command.add_option("--output", a.output, "the run file to write; - for stdout")
      .type_name("RUN.yaml")
      .show_default();
  command.add_option("--output-dir", a.output_dir, "output.dir of the run (default: runs/<model>-<data>)")
      .type_name("DIR");
  command
      .add_optional_value("--lora", a.lora,
                          "train LoRA adapters of this rank instead of all weights (default: 16, which is "
                          "written to the file)")
      .type_name("[R]");
  command
      .add_option("overrides", a.overrides, "settings for the run file: path=value, with the value in YAML")
      .type_name("key=value");
  command.add_flag("--force", a.force, "replace an existing run file");
  command.footer(
      "example: plimsoll init --model HuggingFaceTB/SmolLM2-135M --data chats.jsonl\n"
      "         plimsoll train run.yaml\n"
      "         plimsoll generate --model runs/SmolLM2-135M-chats --prompt \"Hello\"\n"
      "a large model on a card: plimsoll init --model Qwen/Qwen2.5-7B --data chats.jsonl --lora "
      "runtime.profile=rtx4090");
}

/// --data takes all words behind it, a setting among them too.
void part_settings_from_files(InitArguments& a) {
  const auto is_setting = [](const std::string& word) {
    std::error_code ignored;
    return word.find('=') != std::string::npos && !std::filesystem::exists(word, ignored);
  };
  std::ranges::copy_if(a.data, std::back_inserter(a.overrides), is_setting);
  std::erase_if(a.data, is_setting);
}

/// Of --lora: its rank, 16 where none is given. A setting that stands behind it is no rank.
Result<std::optional<int64_t>> lora_rank(InitArguments& a) {
  if (a.lora.empty()) return std::optional<int64_t>();
  if (a.lora.find('=') != std::string::npos)
    a.overrides.insert(a.overrides.begin(), std::exchange(a.lora, "true"));
  constexpr int64_t kUsual = 16;
  if (a.lora == "true") return std::optional(kUsual);
  int64_t rank = 0;
  const char* const end = a.lora.data() + a.lora.size();
  const auto [at, code] = std::from_chars(a.lora.data(), end, rank);
  if (code == std::errc() && at == end && rank > 0 && rank <= 65536) return std::optional(rank);
  return Error{ErrorCode::kInvalidArgument, "--lora takes a rank from 1 to 65536", a.lora,
               "--lora 16; settings after it are written as path=value"};
}

Status run_init(InitArguments& a) {
  std::error_code ignored;
  if (a.output != "-" && !a.force && std::filesystem::exists(a.output, ignored))
    return Error{ErrorCode::kInvalidArgument, "the file exists already", a.output,
                 "name another with --output, or replace it with --force"};
  part_settings_from_files(a);
  if (a.data.empty())
    return Error{ErrorCode::kInvalidArgument, "--data names no file", {}, "give it files or globs"};
  PLIMSOLL_ASSIGN(const std::optional<int64_t> rank, lora_rank(a));
  if (a.output != "-") PLIMSOLL_TRY(io::check_writable(a.output));
  PLIMSOLL_ASSIGN(const analysis::RunProposal proposal,
                  analysis::propose_run({.model = a.model,
                                         .data = a.data,
                                         .tokenizer = a.tokenizer,
                                         .output_dir = a.output_dir,
                                         .lora_rank = rank,
                                         .overrides = a.overrides,
                                         .num_threads = num_available_cpus()}));
  if (a.output == "-") {
    std::fputs(proposal.yaml.c_str(), stdout);
    return Ok{};
  }
  PLIMSOLL_TRY(io::write_file_atomically(a.output, proposal.yaml));
  std::string text = planner::headline(proposal.report);
  text += fmt::format("wrote {}; next:\n  plimsoll plan {}     shows memory and time\n  plimsoll train {}\n",
                      a.output, a.output, a.output);
  print_text(text);
  return Ok{};
}

}  // namespace

Command add_init(Parser app) {
  return add_command<InitArguments>(app, "init", "write a planned run file for a model and data", declare,
                                    run_init);
}

}  // namespace plimsoll::cli
