// An adapter's folder: which base it belongs to, what it adapts, with which ranks, what it saves whole.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>

#include "base/numbers.h"
#include "base/units.h"
#include "cli/inspect/inspect.h"
#include "cli/table.h"
#include "io/model_config.h"
#include "models/lora_config.h"

namespace plimsoll::cli {
namespace {

/// What the file's tensors say.
struct Contents {
  std::map<std::string, int64_t> adapted;  ///< modules by the last part of their names
  std::set<int64_t> ranks;
  std::vector<std::string> whole;  ///< tensors of the model
  int64_t num_adapted = 0, copies = 0;
};

std::string last_of(std::string_view name) { return std::string(name.substr(name.rfind('.') + 1)); }

Contents contents_of(const io::SafetensorsFile& file) {
  constexpr std::string_view kRoot = "base_model.model.";
  Contents c;
  for (const io::SafetensorsTensor& t : file.tensors()) {
    std::string_view name = t.name;
    if (name.starts_with(kRoot)) name.remove_prefix(kRoot.size());
    const size_t lora = name.find(".lora_");
    const std::string_view kind = lora == std::string_view::npos ? "" : name.substr(lora);
    if (kind == ".lora_A.weight" || kind == ".lora_embedding_A") {
      ++c.adapted[last_of(name.substr(0, lora))];
      ++c.num_adapted;
      if (!t.shape.empty()) c.ranks.insert(t.shape[0]);
    } else if (name.ends_with(".base_layer.weight")) {
      ++c.copies;
    } else if (kind.empty()) {
      c.whole.emplace_back(name);
    }
  }
  return c;
}

std::string kind_of(const models::LoraSpec& spec) {
  using models::LoraInit;
  std::string kind = spec.use_dora ? "LoRA with direction and magnitude (DoRA)" : "LoRA";
  if (spec.init_lora_weights == LoraInit::kPissa) kind += ", initialised with PiSSA";
  if (spec.init_lora_weights == LoraInit::kOlora) kind += ", initialised with OLoRA";
  if (spec.lora_bias) kind += ", with a bias for B";
  return kind;
}

void add_spec(Facts& facts, const models::LoraSpec& spec) {
  facts.add("kind", io::Tree::of(kind_of(spec)), "kind", kind_of(spec));
  facts.add(
      "r", io::Tree::of(spec.r), "rank",
      fmt::format("{}, scaled by {} / {}", spec.r, spec.lora_alpha, spec.use_rslora ? "sqrt(rank)" : "rank"));
  facts.add("lora_alpha", io::Tree::of(spec.lora_alpha));
  facts.add("use_rslora", io::Tree::of(spec.use_rslora));
  if (!spec.rank_pattern.empty())
    facts.line("", fmt::format("other ranks for {}",
                               counted(static_cast<int64_t>(spec.rank_pattern.size()), "pattern")));
  const auto& names = spec.target_modules.names;
  facts.add(
      "target_modules", io::Tree::of(fmt::format("{}", fmt::join(names, ", "))), "targets",
      fmt::format("{}{}", spec.target_modules.is_pattern && names.front() != "all-linear" ? "pattern " : "",
                  fmt::join(names, ", ")));
}

Result<std::string> base_of(const std::string& directory) {
  PLIMSOLL_ASSIGN(const io::ConfigJson config, io::read_config_json(directory + "/adapter_config.json"));
  const io::Tree* base = config.fields().find("base_model_name_or_path");
  return base == nullptr || base->is_null() ? std::string() : base->text;
}

}  // namespace

Status inspect_adapter(const std::string& directory, const InspectArguments& arguments) {
  PLIMSOLL_ASSIGN(const models::LoraSpec spec, models::read_adapter_config(directory));
  PLIMSOLL_ASSIGN(const std::string base, base_of(directory));
  PLIMSOLL_ASSIGN(const io::SafetensorsFile file,
                  io::SafetensorsFile::open(directory + "/adapter_model.safetensors"));
  const std::vector<io::WeightRef> refs = tensors_of(file);
  const Contents c = contents_of(file);
  Facts facts("adapter");
  facts.add("path", io::Tree::of(directory), "adapter", directory);
  facts.add("base", base.empty() ? io::Tree() : io::Tree::of(base), "base",
            base.empty() ? "not named" : base);
  add_spec(facts, spec);
  std::vector<std::string> modules;
  io::Tree adapted = io::Tree::map();
  for (const auto& [name, count] : c.adapted) {
    modules.push_back(fmt::format("{} x {}", count, name));
    adapted.set(name, io::Tree::of(count));
  }
  facts.add(
      "modules", std::move(adapted), "modules",
      fmt::format("{}: {}; ranks {}", c.num_adapted, fmt::join(modules, ", "), fmt::join(c.ranks, ", ")));
  std::vector<io::Tree> whole;
  for (const std::string& name : c.whole) {
    facts.line(whole.empty() ? "whole" : "", name);
    whole.push_back(io::Tree::of(name));
  }
  facts.add("whole", io::Tree::list(std::move(whole)));
  if (c.copies > 0)
    facts.line("", fmt::format("and {} of the base's own weights, which PEFT adds", c.copies));
  add_totals(facts, refs);
  facts.line("tensors", fmt::format("{}, {}", grouped(static_cast<int64_t>(refs.size())), dtypes_text(refs)));
  facts.add("bytes", io::Tree::of(file.size_bytes()), "size", to_string(Bytes(file.size_bytes())));
  facts.print(arguments.json);
  return arguments.tensors ? print_tensors(refs, arguments.json) : Status(Ok{});
}

}  // namespace plimsoll::cli
