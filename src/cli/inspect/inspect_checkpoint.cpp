// A checkpoint: where the run stood, with which settings, what was saved; every byte against its checksum.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/numbers.h"
#include "base/process.h"
#include "base/units.h"
#include "checkpoints/checkpoint.h"
#include "cli/inspect/inspect.h"
#include "cli/table.h"
#include "io/file.h"
#include "settings/settings.h"

namespace plimsoll::cli {
namespace {

constexpr std::string_view kParameters = "parameters";
/// More than any run file that this program writes.
constexpr int64_t kMaxRunFileBytes = 1 << 20;

std::string hex(uint64_t checksum) { return fmt::format("{:016x}", checksum); }

void add_counters(Facts& facts, const checkpoints::CheckpointManifest& m) {
  facts.add("step", io::Tree::of(m.step), "step",
            fmt::format("{} of {}", grouped(m.step), grouped(m.total_steps)));
  facts.add("total_steps", io::Tree::of(m.total_steps));
  facts.add("tokens", io::Tree::of(m.tokens), "tokens", grouped(m.tokens));
  const double epochs =
      m.num_sequences > 0 ? static_cast<double>(m.position) / static_cast<double>(m.num_sequences) : 0;
  facts.add("position", io::Tree::of(m.position), "data",
            fmt::format("{} read, {:.2f} epochs of {}", counted(m.position, "sequence"), epochs,
                        grouped(m.num_sequences)));
  facts.add("num_sequences", io::Tree::of(m.num_sequences));
  facts.add("num_data_tokens", io::Tree::of(m.num_data_tokens));
  facts.add("seed", io::Tree::of(m.seed), "seed", std::to_string(m.seed));
  facts.add("isa", io::Tree::of(m.isa), "kernels", m.isa);
}

/// The settings that are not their defaults.
Status add_settings(Facts& facts, const std::string& directory) {
  const std::string path = directory + "/run.yaml";
  PLIMSOLL_ASSIGN(const std::string text, io::read_small_file(path, kMaxRunFileBytes));
  PLIMSOLL_ASSIGN(const settings::RunConfig config, settings::parse_recorded_run(text, path));
  const settings::RunConfig defaults;
  io::Tree settings_tree = io::Tree::map();
  for (const settings::Setting& setting : settings::settings()) {
    const std::string value = settings::setting_text(setting, config);
    if (value == settings::setting_text(setting, defaults)) continue;
    facts.line(settings_tree.members.empty() ? "settings" : "", setting.path + ": " + value);
    settings_tree.set(setting.path, io::Tree::of(value));
  }
  facts.add("settings", std::move(settings_tree));
  return Ok{};
}

/// "adamw.m.model.norm.weight" is of class adamw.m where model.norm.weight is a tensor of the model.
std::string class_of(const std::string& name, const std::set<std::string, std::less<>>& parameters) {
  for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1))
    if (parameters.contains(std::string_view(name).substr(dot + 1))) return name.substr(0, dot);
  return parameters.contains(name) ? std::string(kParameters) : "other";
}

void add_classes(Facts& facts, const checkpoints::CheckpointManifest& manifest) {
  std::set<std::string, std::less<>> parameters;
  if (const checkpoints::CheckpointFile* model = manifest.find_file("model.safetensors"))
    for (const auto& tensor : model->tensors) parameters.insert(tensor.name);
  struct Class {
    int64_t tensors = 0, bytes = 0;
  };
  std::map<std::string, Class> classes;
  for (const auto& file : manifest.files)
    for (const auto& tensor : file.tensors) {
      Class& c = classes[class_of(tensor.name, parameters)];
      ++c.tensors;
      c.bytes += tensor.bytes;
    }
  io::Tree tree = io::Tree::map();
  for (const auto& [name, c] : classes) {
    facts.line(tree.members.empty() ? "tensors" : "",
               fmt::format("{}: {}, {}", name, counted(c.tensors, "tensor"), to_string(Bytes(c.bytes))));
    tree.set(name, io::Tree::map({{"tensors", io::Tree::of(c.tensors)}, {"bytes", io::Tree::of(c.bytes)}}));
  }
  facts.add("classes", std::move(tree));
}

void add_files(Facts& facts, const checkpoints::CheckpointManifest& manifest) {
  std::vector<io::Tree> files;
  int64_t bytes = 0;
  for (const auto& file : manifest.files) {
    bytes += file.bytes;
    facts.line(files.empty() ? "files" : "", fmt::format("{}, {}", file.name, to_string(Bytes(file.bytes))));
    files.push_back(io::Tree::map({{"name", io::Tree::of(file.name)},
                                   {"bytes", io::Tree::of(file.bytes)},
                                   {"tensors", io::Tree::of(static_cast<int64_t>(file.tensors.size()))},
                                   {"checksum", io::Tree::of(hex(file.checksum))}}));
  }
  facts.add("files", io::Tree::list(std::move(files)));
  facts.add("bytes", io::Tree::of(bytes), "size", to_string(Bytes(bytes)));
}

}  // namespace

Status inspect_checkpoint(const std::string& directory, const InspectArguments& arguments) {
  PLIMSOLL_ASSIGN(const checkpoints::Checkpoint checkpoint, checkpoints::open_checkpoint(directory));
  Status verified = checkpoints::verify_checkpoint(checkpoint, num_available_cpus());
  Facts facts("checkpoint");
  facts.add("path", io::Tree::of(directory), "checkpoint", directory);
  add_counters(facts, checkpoint.manifest);
  PLIMSOLL_TRY(add_settings(facts, directory));
  add_classes(facts, checkpoint.manifest);
  add_files(facts, checkpoint.manifest);
  facts.add("intact", io::Tree::of(verified.ok()), "checksums",
            verified ? "all are right" : "DAMAGED: " + verified.error().message());
  facts.print(arguments.json);
  if (!verified) return verified;
  if (!arguments.tensors) return Ok{};
  std::vector<io::SafetensorsFile> files;
  std::vector<io::WeightRef> refs;
  for (const auto& file : checkpoint.manifest.files)
    if (!file.tensors.empty()) {
      PLIMSOLL_ASSIGN(io::SafetensorsFile opened, io::SafetensorsFile::open(directory + "/" + file.name));
      files.push_back(std::move(opened));
    }
  for (const io::SafetensorsFile& file : files) {
    const auto tensors = tensors_of(file);
    refs.insert(refs.end(), tensors.begin(), tensors.end());
  }
  return print_tensors(std::move(refs), arguments.json);
}

}  // namespace plimsoll::cli
