// plimsoll inspect: what a file or a folder holds, by what lies in it. The kinds are a file each.
#include "cli/inspect/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/numbers.h"
#include "base/units.h"
#include "checkpoints/checkpoint.h"
#include "cli/commands.h"
#include "cli/inspect/inspect_image_pack.h"
#include "cli/inspect/inspect_pack.h"
#include "cli/inspect/inspect_shard.h"
#include "cli/table.h"
#include "corpora/images/image_pack.h"
#include "datasets/shard.h"
#include "io/hub_cache.h"

namespace plimsoll::cli {
namespace {

bool exists(const std::string& path) {
  std::error_code code;
  return std::filesystem::exists(path, code);
}

io::Tree metadata_tree(const io::SafetensorsFile& file) {
  io::Tree metadata = io::Tree::map();
  for (const auto& [key, value] : file.metadata()) metadata.members.emplace_back(key, io::Tree::of(value));
  return metadata;
}

Status inspect_file(const std::string& path, bool json, bool tensors) {
  PLIMSOLL_ASSIGN(const io::SafetensorsFile file, io::SafetensorsFile::open(path));
  const std::vector<io::WeightRef> refs = tensors_of(file);
  const int64_t header_bytes = refs.empty() ? file.size_bytes() : file.tensors().front().offset;
  Facts facts("file");
  facts.add("path", io::Tree::of(path), "file", path);
  facts.add("bytes", io::Tree::of(file.size_bytes()), "size",
            fmt::format("{}, {} of it the header", to_string(Bytes(file.size_bytes())),
                        to_string(Bytes(header_bytes))));
  facts.add("header_bytes", io::Tree::of(header_bytes));
  add_totals(facts, refs);
  facts.line("tensors", fmt::format("{}{}", grouped(static_cast<int64_t>(refs.size())),
                                    refs.empty() ? "" : ", " + dtypes_text(refs)));
  facts.add("metadata", metadata_tree(file));
  for (const auto& [key, value] : file.metadata())
    facts.line(&key == &file.metadata().front().first ? "metadata" : "", fmt::format("{} = {}", key, value));
  facts.print(json);
  return tensors ? print_tensors(refs, json) : Status(Ok{});
}

/// Weights without a config: each file by itself.
Status inspect_files(const std::vector<std::string>& files, const InspectArguments& arguments) {
  for (const std::string& file : files) {
    if (&file != &files.front() && !arguments.json) fmt::print("\n");
    PLIMSOLL_TRY(inspect_file(file, arguments.json, arguments.tensors));
  }
  return Ok{};
}

Error nothing_known(const std::string& directory) {
  return {
      ErrorCode::kBadData, "there is nothing here that can be inspected", directory,
      "name a safetensors file, a model's folder (with config.json), a checkpoint or an adapter's folder"};
}

Status inspect_directory(const std::string& directory, const InspectArguments& arguments) {
  if (exists(directory + "/" + std::string(checkpoints::kCheckpointFile)))
    return inspect_checkpoint(directory, arguments);
  if (exists(directory + "/adapter_config.json")) return inspect_adapter(directory, arguments);
  if (exists(directory + "/config.json")) return inspect_model(directory, arguments);
  std::vector<std::string> files;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(directory, code))
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path().string());
  if (files.empty()) return nothing_known(directory);
  std::sort(files.begin(), files.end());
  return inspect_files(files, arguments);
}

Error usage(const std::string& what, const std::string& hint) {
  return {ErrorCode::kInvalidArgument, what, "plimsoll inspect", hint};
}

Status inspect(const InspectArguments& arguments) {
  if (arguments.formats) {
    if (arguments.path.empty() && arguments.as.empty()) return inspect_formats(arguments.json);
    return usage("--formats takes no file", "name a file with --as FORMAT to see the effect of a format");
  }
  if (arguments.path.empty()) return usage("the file is missing", "see plimsoll inspect --help");
  if (!arguments.as.empty()) return inspect_as(arguments);
  if (!arguments.output.empty())
    return usage("--output goes with --as", "name the format: --as bf16, or another of --formats");
  std::error_code code;
  if (std::filesystem::is_directory(arguments.path, code)) {
    PLIMSOLL_ASSIGN(const std::string folder, io::find_model_folder(arguments.path));
    return inspect_directory(folder, arguments);
  }
  if (!exists(arguments.path) && io::is_hub_id(arguments.path) && !arguments.path.ends_with(".safetensors")) {
    PLIMSOLL_ASSIGN(const std::string folder, io::find_model_folder(arguments.path));
    return inspect_directory(folder, arguments);
  }
  if (datasets::is_shard(arguments.path)) return inspect_shard(arguments);
  if (is_pack_index(arguments.path)) return inspect_pack(arguments);
  if (corpora::is_image_pack(arguments.path)) return inspect_image_pack(arguments);
  return inspect_file(arguments.path, arguments.json, /*tensors=*/true);
}

void add_inspect_options(Parser command, InspectArguments& a) {
  command
      .add_option(
          "path", a.path,
          "a safetensors file, a token shard, a pack index, a pack of images, a model's folder or a "
          "Hub id that is already cached, a run's folder (its final/), a checkpoint, an adapter's folder")
      .type_name("FILE|DIR");
  command.add_flag("--json", a.json,
                   "print one JSON object per line on stdout and nothing else, sizes exact");
  command.add_flag("--tensors", a.tensors, "show each tensor of a folder with its statistics");
  command
      .add_option("--as", a.as,
                  "show the effect of rounding each tensor of a safetensors file to this format")
      .type_name("FORMAT");
  command
      .add_option("--output", a.output,
                  "with --as: write codes, scales and dequantized values as safetensors")
      .type_name("OUT.safetensors");
  command.add_flag("--formats", a.formats, "list the number formats: bits, range, steps");
  command.footer(
      "min, max, mean and std cover the finite numbers; std is that of the population.\n"
      "examples: plimsoll inspect model.safetensors\n"
      "          plimsoll inspect runs/one/checkpoint-100 --tensors\n"
      "          plimsoll inspect model.safetensors --as mxfp8 --output rounded.safetensors\n"
      "          plimsoll inspect --formats\n"
      "exit codes: 0, 2 for an unknown format, 65 a damaged file or image, or weights that do not "
      "match config.json");
}

}  // namespace

Command add_inspect(Parser app) {
  return add_command<InspectArguments>(
      app, "inspect",
      "show the contents of a safetensors file, a model, a checkpoint, an adapter or packed data",
      add_inspect_options, inspect);
}

}  // namespace plimsoll::cli
