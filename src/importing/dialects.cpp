#include "importing/dialects.h"

#include <algorithm>
#include <vector>

#include "io/suggest.h"
#include "settings/harmless_keys.h"

namespace plimsoll::importing {
namespace {

/// The tables that hold for a dialect, its own first.
std::vector<std::span<const Row>> tables_of(Dialect dialect) {
  switch (dialect) {
    case Dialect::kTransformers:
      return {transformers_rows()};
    case Dialect::kTrl:
      return {trl_rows(), transformers_rows()};
    case Dialect::kAxolotl:
      return {axolotl_rows(), trl_rows(), transformers_rows()};
    case Dialect::kTorchtune:
      return {torchtune_rows()};
    case Dialect::kDeepspeed:
      return {deepspeed_rows()};
  }
  return {};
}

bool matches(std::string_view row, std::string_view pattern) {
  if (!row.ends_with(".*")) return row == pattern;
  const std::string_view section = row.substr(0, row.size() - 1);
  return pattern.starts_with(section) || pattern == section.substr(0, section.size() - 1);
}

bool has_component(const io::Tree& tree) {
  return std::any_of(tree.members.begin(), tree.members.end(),
                     [](const auto& member) { return member.second.find("_component_") != nullptr; });
}

bool has_any(const io::Tree& tree, std::initializer_list<std::string_view> keys) {
  return std::any_of(keys.begin(), keys.end(),
                     [&](std::string_view key) { return tree.find(key) != nullptr; });
}

bool is_map(const io::Tree* tree) { return tree != nullptr && tree->kind == io::Tree::Kind::kMap; }

}  // namespace

const Row* find_row(Dialect dialect, std::string_view pattern) {
  for (const auto table : tables_of(dialect)) {
    // A key's own row goes before the row of its section.
    const Row* of_section = nullptr;
    for (const Row& row : table) {
      if (!matches(row.key, pattern)) continue;
      if (!row.key.ends_with(".*")) return &row;
      if (of_section == nullptr) of_section = &row;
    }
    if (of_section != nullptr) return of_section;
  }
  return nullptr;
}

std::string nearest_key(Dialect dialect, std::string_view pattern) {
  std::vector<std::string> known;
  for (const auto table : tables_of(dialect))
    for (const Row& row : table)
      if (!row.key.ends_with('*')) known.emplace_back(row.key);
  if (dialect != Dialect::kTorchtune && dialect != Dialect::kDeepspeed)
    for (const settings::HarmlessKey& key : settings::harmless_keys()) known.emplace_back(key.name);
  return io::nearest_name(pattern.substr(0, 100), known);
}

std::optional<Dialect> recognised(const io::Tree& tree) {
  const io::Tree* optimizer = tree.find("optimizer");
  const bool is_engine = is_map(optimizer) && optimizer->find("type") != nullptr;
  if (has_any(tree, {"zero_optimization", "train_micro_batch_size_per_gpu", "train_batch_size"}) ||
      is_map(tree.find("fp16")) || is_map(tree.find("bf16")) || is_engine)
    return Dialect::kDeepspeed;
  if (has_component(tree)) return Dialect::kTorchtune;
  if (has_any(tree, {"base_model", "sequence_len", "sample_packing", "val_set_size"}))
    return Dialect::kAxolotl;
  if (has_any(tree, {"max_length", "max_seq_length", "packing", "assistant_only_loss", "completion_only_loss",
                     "dataset_text_field", "dataset_train_split", "use_peft", "packing_strategy",
                     "chat_template_path", "model_init_kwargs", "dataset_num_proc", "lora_r", "load_in_4bit",
                     "test_split_size"}))
    return Dialect::kTrl;
  const auto known = [](const auto& member) {
    return find_row(Dialect::kTransformers, member.first) != nullptr ||
           settings::find_harmless_key(member.first) != nullptr;
  };
  if (std::any_of(tree.members.begin(), tree.members.end(), known)) return Dialect::kTransformers;
  return {};
}

}  // namespace plimsoll::importing
