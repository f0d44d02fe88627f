// plimsoll import: the configuration of another program as a run file.
#include "importing/import.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "base/host.h"
#include "cli/commands.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "io/file.h"

namespace plimsoll::cli {
namespace {

struct ImportArguments {
  std::vector<std::string> files;
  std::string from, output;
  bool json = false;
};

Result<std::vector<importing::InputFile>> read_files(const std::vector<std::string>& paths) {
  std::vector<importing::InputFile> files;
  for (const std::string& path : paths) {
    auto text = io::read_small_file(path, io::TreeLimits{}.max_bytes, ErrorCode::kInvalidArgument);
    if (!text) {
      Error error = std::move(text).error();
      error.code = ErrorCode::kInvalidArgument;
      return error;
    }
    files.push_back({path, std::move(*text)});
  }
  return files;
}

/// What a reader of the run file has to know, on stderr: keys without an equal, what is still to say, counts.
void tell(const importing::Imported& imported) {
  using importing::Fate;
  for (const auto& report : imported.keys)
    if (report.fate == Fate::kNoEqual)
      print_message(
          printable(fmt::format("not supported: {}: {}: {}", report.key.name,
                                io::to_yaml_flow(importing::shown_value(report.key)), report.note)));
  for (const auto& [setting, line] : imported.defaults)
    if (line.is_other)
      print_message(printable(
          fmt::format("not supported: {} {}: {}", setting, io::to_yaml_flow(line.value), line.comment)));
  for (const auto& [setting, why] : imported.fill_in)
    print_message(printable(fmt::format("fill in: {}: {}", setting, why)));
  print_message(fmt::format("{} mapped, {} without effect, {} not supported, {} differing defaults written",
                            imported.count(Fate::kMapped), imported.count(Fate::kHarmless),
                            imported.count(Fate::kNoEqual), imported.defaults.size()));
}

Status import(const ImportArguments& a) {
  PLIMSOLL_ASSIGN(const auto files, read_files(a.files));
  PLIMSOLL_ASSIGN(const importing::Imported imported, importing::import_run(files, a.from));
  if (!a.output.empty()) PLIMSOLL_TRY(io::write_file_atomically(a.output, imported.run_file));
  if (a.json) {
    io::Tree event = importing::import_event(imported);
    event.set("output", a.output.empty() ? io::Tree{} : io::Tree::of(a.output));
    fmt::print("{}\n", io::to_json(event));
  } else if (a.output.empty()) {
    fmt::print("{}", imported.run_file);
  }
  tell(imported);
  return Ok{};
}

void add_import_options(Parser command, ImportArguments& a) {
  command.add_option("files", a.files, "YAML or JSON; two files with a DeepSpeed configuration")
      .required()
      .type_name("FILE");
  command.add_option("--from", a.from, "format of the file; default: detected from its keys")
      .one_of({"transformers", "trl", "torchtune", "axolotl", "deepspeed"});
  command.add_option("--output", a.output, "the run file to write (default: stdout)").type_name("RUN.yaml");
  command.add_flag("--json", a.json, "print one JSON object about all keys on stdout and nothing else");
  command.footer(
      "Each setting of the run file names the key that it comes from; keys without effect and keys that are "
      "not\n"
      "supported follow as comments. stderr lists the latter, and the settings that you have to fill in.\n"
      "examples: plimsoll import training_args.json --output run.yaml\n"
      "          plimsoll import sft.yaml --from trl | less\n"
      "          plimsoll import args.yaml ds_config.json --output run.yaml      \"auto\" is filled in from "
      "args.yaml\n"
      "          plimsoll plan run.yaml\n"
      "exit codes: 0 done, 2 not a configuration, or bad values (no file is written), 74 I/O");
}

}  // namespace

Command add_import(Parser app) {
  return add_command<ImportArguments>(
      app, "import", "convert a configuration of transformers, TRL, torchtune, axolotl or DeepSpeed",
      add_import_options, import);
}

}  // namespace plimsoll::cli
