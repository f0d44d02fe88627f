// The table of transformers' names, a row each.
#include "settings/settings_alias.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "io/suggest.h"

namespace plimsoll::settings {
namespace {

/// A value in the setting's own terms; nothing where it says nothing (bf16: false).
using Translation = Result<std::optional<io::Tree>>;

Error no_equal(std::string_view name, const io::Tree& value, std::string hint) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("{} is {}, which is not supported", name, value.describe()),
          {},
          std::move(hint)};
}

Translation same(std::string_view, const io::Tree& value) { return std::optional<io::Tree>(value); }

/// bf16, fp16, tf32: true names the precision, false leaves it.
Translation precision(std::string_view name, const io::Tree& value) {
  if (value.kind != io::Tree::Kind::kBool) return no_equal(name, value, "write true or false");
  if (!value.boolean) return std::optional<io::Tree>{};
  return std::optional<io::Tree>(io::Tree::of(std::string(name)));
}

Translation checkpointing(std::string_view name, const io::Tree& value) {
  if (value.kind != io::Tree::Kind::kBool) return no_equal(name, value, "write true or false");
  return std::optional<io::Tree>(io::Tree::of(std::string(value.boolean ? "full" : "none")));
}

Translation optimizer(std::string_view name, const io::Tree& value) {
  struct Row {
    std::string_view theirs;
    std::string_view ours;
  };
  static constexpr std::array<Row, 15> kTable = {{{"adamw_torch", "adamw"},
                                                  {"adamw_torch_fused", "adamw"},
                                                  {"adamw_hf", "adamw"},
                                                  {"adamw", "adamw"},
                                                  {"adamw_8bit", "adamw_8bit"},
                                                  {"adamw_bnb_8bit", "adamw_8bit"},
                                                  {"paged_adamw_8bit", "adamw_8bit"},
                                                  {"adafactor", "adafactor"},
                                                  {"sgd", "sgd"},
                                                  {"lion", "lion"},
                                                  {"lion_32bit", "lion"},
                                                  {"muon", "muon"},
                                                  {"adam", "adam"},
                                                  {"paged_adamw", "adamw"},
                                                  {"paged_adamw_32bit", "adamw"}}};
  std::vector<std::string> known;
  for (const Row& row : kTable) {
    if (value.kind == io::Tree::Kind::kString && row.theirs == value.text)
      return std::optional<io::Tree>(io::Tree::of(std::string(row.ours)));
    known.emplace_back(row.theirs);
  }
  return no_equal(name, value, io::nearest_hint(value.text, known));
}

/// save_strategy, eval_strategy: YAML 1.1 readers turn an unquoted no into false.
Translation strategy(std::string_view name, const io::Tree& value) {
  if (value.kind != io::Tree::Kind::kBool) return std::optional<io::Tree>(value);
  if (value.boolean) return no_equal(name, value, "write no, steps or epoch");
  return std::optional<io::Tree>(io::Tree::of(std::string("no")));
}

Translation nothing(std::string_view, const io::Tree&) { return std::optional<io::Tree>{}; }

/// TRL's packing: true is best_fit, false one document a sequence.
Translation packing(std::string_view name, const io::Tree& value) {
  if (value.kind != io::Tree::Kind::kBool)
    return no_equal(name, value, "write true or false, or data.packing");
  return std::optional<io::Tree>(io::Tree::of(std::string(value.boolean ? "best_fit" : "pad")));
}

/// dataloader_prefetch_factor: null leaves it.
Translation unless_null(std::string_view, const io::Tree& value) {
  if (value.is_null()) return std::optional<io::Tree>{};
  return std::optional<io::Tree>(value);
}

/// assistant_only_loss, completion_only_loss: each says of one kind of line what is a target. TRL looks at
/// completion_only_loss where a line has a prompt and a completion, so true leaves conversations whole; false
/// counts everything. assistant_only_loss: false leaves completions alone targets. True with both, a target
/// is in an assistant's turn and in the completion; with completion_only_loss: false, in any assistant's
/// turn. Source: trl/trainer/sft_trainer.py at 00313f2, tokenize_fn and build_labels.
template <int kScope>
Translation loss_scope(std::string_view name, const io::Tree& value) {
  if (value.is_null()) return std::optional<io::Tree>{};
  if (value.kind != io::Tree::Kind::kBool) return no_equal(name, value, "write true or false");
  const char* const if_true = kScope == 0 ? "assistant" : "trl";
  const char* const if_false = kScope == 0 ? "trl" : "all";
  return std::optional<io::Tree>(io::Tree::of(std::string(value.boolean ? if_true : if_false)));
}

/// torch's 0 workers: the main process reads. A thread does so here.
Translation workers(std::string_view, const io::Tree& value) {
  if (value.kind == io::Tree::Kind::kInteger && value.integer == 0)
    return std::optional<io::Tree>(io::Tree::of(int64_t{1}));
  return std::optional<io::Tree>(value);
}

/// One of the two numbers of training.adafactor.eps.
template <size_t kPlace>
Translation one_of_two(std::string_view, const io::Tree& value) {
  io::Tree pair = io::Tree::list({io::Tree{}, io::Tree{}});
  pair.items[kPlace] = value;
  return std::optional<io::Tree>(std::move(pair));
}

constexpr std::array<Alias, 29> kAliases = {{
    {"per_device_train_batch_size", "training.micro_batch_size", same, ""},
    {"num_train_epochs", "training.num_epochs", same, ""},
    {"bf16", "training.precision", precision, "", "bf16"},
    {"fp16", "training.precision", precision, "", "fp16"},
    {"tf32", "training.precision", precision, "", "tf32"},
    {"gradient_checkpointing", "memory.recompute", checkpointing, ""},
    {"optim", "training.optimizer", optimizer, ""},
    {"lr_scheduler_type", "training.lr_scheduler", same, ""},
    {"output_dir", "output.dir", same, ""},
    {"save_steps", "output.save_steps", same, ""},
    {"save_total_limit", "output.save_total_limit", same, ""},
    {"save_strategy", "output.save_strategy", strategy, ""},
    {"eval_strategy", "training.eval_strategy", strategy, ""},
    {"evaluation_strategy", "training.eval_strategy", strategy, ""},
    {"eval_steps", "training.eval_steps", same, ""},
    {"max_seq_length", "data.sequence_length", same, ""},
    {"max_length", "data.sequence_length", same, ""},
    {"model_name_or_path", "model.path", same, ""},
    {"train_file", "data.train", same, ""},
    {"validation_file", "data.eval", same, ""},
    {"dataset_text_field", "data.text_key", same, ""},
    {"packing", "data.packing", packing, ""},
    {"assistant_only_loss", "data.loss", loss_scope<0>, ""},
    {"completion_only_loss", "data.loss", loss_scope<1>, ""},
    {"dataloader_num_workers", "data.num_workers", workers, ""},
    {"dataloader_prefetch_factor", "data.prefetch_factor", unless_null, ""},
    {"epsilon1", "training.adafactor.eps", one_of_two<0>, ""},
    {"epsilon2", "training.adafactor.eps", one_of_two<1>, ""},
    {"torch_empty_cache_steps", "", nothing,
     "torch_empty_cache_steps does nothing: no memory is cached here, so there is none to give back"},
}};

}  // namespace

std::span<const Alias> aliases() { return kAliases; }

const Alias* find_alias(std::string_view name) {
  const auto found =
      std::find_if(kAliases.begin(), kAliases.end(), [&](const Alias& a) { return a.name == name; });
  return found == kAliases.end() ? nullptr : found;
}

std::optional<io::Tree> together(std::string_view name, const io::Tree& value, std::string_view other_name,
                                 const io::Tree& other) {
  const Alias *a = find_alias(name), *b = find_alias(other_name);
  // Of the two numbers each name leaves the other's as it is.
  constexpr std::string_view kEps = "training.adafactor.eps";
  const auto is_of_eps = [&](std::string_view given, const Alias* alias) {
    return given == kEps || (alias != nullptr && alias->path == kEps);
  };
  if (is_of_eps(name, a) && is_of_eps(other_name, b) && name != other_name) {
    io::Tree both = value;
    for (size_t i = 0; i < both.items.size() && i < other.items.size(); ++i)
      if (both.items[i].is_null()) both.items[i] = other.items[i];
    return both;
  }
  if (a == nullptr || b == nullptr || a == b || a->path != b->path) return {};
  // tf32 is for the products that stay in fp32, and beside 16 bits there are none.
  if (a->path == "training.precision" && (value.text == "tf32" || other.text == "tf32"))
    return value.text == "tf32" ? other : value;
  if (a->path != "data.loss") return {};
  struct Row {
    std::string_view assistant, completion, both;
  };
  constexpr std::array<Row, 4> kBoth = {{{"trl", "trl", "trl"},
                                         {"trl", "all", "all"},
                                         {"assistant", "trl", "assistant"},
                                         {"assistant", "all", "all_assistant"}}};
  for (const Row& row : kBoth)
    if ((row.assistant == value.text && row.completion == other.text) ||
        (row.assistant == other.text && row.completion == value.text))
      return io::Tree::of(std::string(row.both));
  return {};
}

std::string alias_markdown() {
  std::string out =
      "## Names from transformers\n\n"
      "Plimsoll accepts these names at the top of a run file, under `training`, and in the section of the "
      "setting. "
      "It accepts\n"
      "settings of `training` at the top as well. If `per_device_train_batch_size` is given and "
      "`global_batch_size` is not, the\n"
      "global batch is its product with `gradient_accumulation_steps`.\n\n"
      "| name | setting |\n| --- | --- |\n";
  for (const Alias& alias : kAliases)
    out += fmt::format("| `{}` | {} |\n", alias.name,
                       alias.path.empty() ? "accepted, without effect" : fmt::format("`{}`", alias.path));
  return out;
}

}  // namespace plimsoll::settings
