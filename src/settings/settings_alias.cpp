// transformers' TrainingArguments by name: each row says which setting it means and how its value is read.
// They are understood at the top of a run file, under `training`, and in the section of the setting that they
// mean.
#include "settings/settings_alias.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "io/suggest.h"

namespace plimsoll {
namespace {

/// A value in the setting's own terms; nothing where it says nothing (bf16: false).
using Translation = Result<std::optional<Tree>>;

Error no_equal(std::string_view name, const Tree& value, std::string hint) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("{} is {}, which has no equal here", name, value.describe()),
          {},
          std::move(hint)};
}

Translation same(std::string_view, const Tree& value) { return std::optional<Tree>(value); }

/// bf16, fp16, tf32: true names the precision, false leaves it.
Translation precision(std::string_view name, const Tree& value) {
  if (value.kind != Tree::Kind::kBool) return no_equal(name, value, "write true or false");
  if (!value.boolean) return std::optional<Tree>{};
  return std::optional<Tree>(Tree::of(std::string(name)));
}

Translation checkpointing(std::string_view name, const Tree& value) {
  if (value.kind != Tree::Kind::kBool) return no_equal(name, value, "write true or false");
  return std::optional<Tree>(Tree::of(std::string(value.boolean ? "full" : "none")));
}

Translation optimizer(std::string_view name, const Tree& value) {
  struct Row {
    std::string_view theirs;
    std::string_view ours;
  };
  static constexpr std::array<Row, 14> kTable = {{{"adamw_torch", "adamw"},
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
                                                  {"paged_adamw_32bit", "adamw"}}};
  std::vector<std::string> known;
  for (const Row& row : kTable) {
    if (value.kind == Tree::Kind::kString && row.theirs == value.text)
      return std::optional<Tree>(Tree::of(std::string(row.ours)));
    known.emplace_back(row.theirs);
  }
  return no_equal(name, value, "the nearest is " + nearest_name(value.text, known));
}

/// save_strategy, eval_strategy, logging_strategy: "no" is 0 steps, "steps" leaves the number to its own
/// setting.
Translation strategy(std::string_view name, const Tree& value) {
  // YAML 1.1 readers turn an unquoted no into false.
  const bool off = value.kind == Tree::Kind::kBool ? !value.boolean : value.text == "no";
  if (off) return std::optional<Tree>(Tree::of(int64_t{0}));
  if (value.text == "steps") return std::optional<Tree>{};
  return no_equal(name, value, "write no or steps");
}

Translation nothing(std::string_view, const Tree&) { return std::optional<Tree>{}; }

/// TRL's packing: true is best_fit, false one document a sequence.
Translation packing(std::string_view name, const Tree& value) {
  if (value.kind != Tree::Kind::kBool) return no_equal(name, value, "write true or false, or data.packing");
  return std::optional<Tree>(Tree::of(std::string(value.boolean ? "best_fit" : "pad")));
}

/// dataloader_prefetch_factor: null leaves it.
Translation unless_null(std::string_view, const Tree& value) {
  if (value.is_null()) return std::optional<Tree>{};
  return std::optional<Tree>(value);
}

/// assistant_only_loss, completion_only_loss: true names the scope, false leaves it.
template <int kScope>
Translation loss_scope(std::string_view name, const Tree& value) {
  if (value.is_null()) return std::optional<Tree>{};
  if (value.kind != Tree::Kind::kBool) return no_equal(name, value, "write true or false");
  if (!value.boolean) return std::optional<Tree>{};
  return std::optional<Tree>(Tree::of(std::string(kScope == 0 ? "assistant" : "completions")));
}

/// torch's 0 workers: the main process reads. A thread does so here.
Translation workers(std::string_view, const Tree& value) {
  if (value.kind == Tree::Kind::kInteger && value.integer == 0)
    return std::optional<Tree>(Tree::of(int64_t{1}));
  return std::optional<Tree>(value);
}

struct Alias {
  std::string_view name;
  std::string_view path;
  Translation (*translate)(std::string_view name, const Tree& value);
  std::string_view note;  ///< a line for the user
};

constexpr std::array<Alias, 32> kAliases = {{
    {"per_device_train_batch_size", "training.micro_batch_size", same, ""},
    {"num_train_epochs", "training.num_epochs", same, ""},
    {"bf16", "training.precision", precision, ""},
    {"fp16", "training.precision", precision, ""},
    {"tf32", "training.precision", precision, ""},
    {"gradient_checkpointing", "memory.recompute", checkpointing, ""},
    {"optim", "training.optimizer", optimizer, ""},
    {"lr_scheduler_type", "training.lr_scheduler", same, ""},
    {"output_dir", "output.dir", same, ""},
    {"save_steps", "output.save_steps", same, ""},
    {"save_total_limit", "output.save_total_limit", same, ""},
    {"save_strategy", "output.save_steps", strategy, ""},
    {"eval_strategy", "training.eval_steps", strategy, ""},
    {"evaluation_strategy", "training.eval_steps", strategy, ""},
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
    {"dataloader_pin_memory", "", nothing,
     "dataloader_pin_memory does nothing on a CPU: the data is read into memory that the plan has already"},
    {"pin_memory", "", nothing,
     "pin_memory does nothing on a CPU: the data is read into memory that the plan has already"},
    {"dataloader_persistent_workers", "", nothing,
     "dataloader_persistent_workers does nothing: the threads that read live as long as the run"},
    {"persistent_workers", "", nothing,
     "persistent_workers does nothing: the threads that read live as long as the run"},
    {"label_smoothing_factor", "",
     [](std::string_view name, const Tree& value) -> Translation {
       if (value.number != 0 || value.kind == Tree::Kind::kString)
         return no_equal(name, value, "leave it at 0");
       return std::optional<Tree>{};
     },
     ""},
    {"torch_empty_cache_steps", "", nothing,
     "torch_empty_cache_steps does nothing: no memory is cached here, so there is none to give back"},
}};

const Alias* find_alias(std::string_view name) {
  const auto found =
      std::find_if(kAliases.begin(), kAliases.end(), [&](const Alias& a) { return a.name == name; });
  return found == kAliases.end() ? nullptr : found;
}

std::string section_of(std::string_view path) { return std::string(path.substr(0, path.find('.'))); }

bool is_section(const std::string& path) {
  const std::string prefix = path + ".";
  return std::any_of(settings().begin(), settings().end(),
                     [&](const Setting& s) { return s.path.starts_with(prefix); });
}

/// "did you mean" over full paths and, where that is nearer, over last names alone.
std::string nearest_setting(const std::string& path) {
  std::string best;
  int least = 1 << 20;
  const std::string last = path.substr(path.rfind('.') + 1);
  const auto consider = [&](const std::string& candidate, std::string_view wanted, std::string_view name) {
    if (const int distance = edit_distance(wanted, name, least); distance < least) {
      least = distance;
      best = candidate;
    }
  };
  for (const Setting& setting : settings()) consider(setting.path, path, setting.path);
  for (const Setting& setting : settings()) {
    consider(setting.path, last, std::string_view(setting.path).substr(setting.path.rfind('.') + 1));
    for (size_t dot = setting.path.find('.'); dot != std::string::npos; dot = setting.path.find('.', dot + 1))
      consider(setting.path.substr(0, dot), path, std::string_view(setting.path).substr(0, dot));
  }
  for (const Alias& alias : kAliases) consider(std::string(alias.name), last, alias.name);
  return best;
}

class Reader {
 public:
  Reader(const std::string& source, std::vector<std::string>& notes) : source_(source), notes_(notes) {}

  Status read(const Tree& map, const std::string& prefix) {
    for (const auto& [key, value] : map.members) PLIMSOLL_TRY(member(prefix, key, value));
    return Ok{};
  }

  std::vector<Assignment> assignments;

 private:
  Status member(const std::string& prefix, const std::string& key, const Tree& value) {
    const std::string path = prefix.empty() ? key : prefix + "." + key;
    // TRL's true and false stand where the setting's words do.
    if (path == "data.packing" && value.kind == Tree::Kind::kBool) return translated(*find_alias(key), value);
    if (const Setting* setting = find_setting(path)) return add(setting, path, value);
    if (is_section(path)) return section(path, value);
    if (const Alias* alias = find_alias(key);
        alias && (prefix.empty() || prefix == "training" || prefix == section_of(alias->path)))
      return translated(*alias, value);
    if (prefix.empty()) {
      if (const Setting* setting = find_setting("training." + key)) return add(setting, key, value);
      if (is_section("training." + key)) return section("training." + key, value);
    }
    return Error{ErrorCode::kInvalidArgument, fmt::format("there is no setting '{}'", path.substr(0, 100)),
                 place(value), missing_blank_hint(key, value, "did you mean " + nearest_setting(path) + "?")};
  }

  Status section(const std::string& path, const Tree& value) {
    const bool optional_section = path == "lora" || path == "quantization";
    if (optional_section && (value.is_null() || value.kind == Tree::Kind::kMap))
      assignments.push_back({.section = path, .name = path, .value = value, .where = place(value)});
    const Setting* fixed = find_setting(path + ".fixed");
    const bool is_map = value.kind == Tree::Kind::kMap;
    if (fixed != nullptr && !is_map && !value.is_null()) return add(fixed, path, value);
    // What stands later takes a static value back.
    if (fixed != nullptr && value.find("fixed") == nullptr) PLIMSOLL_TRY(add(fixed, path, Tree{}));
    if (value.is_null()) return Ok{};
    if (is_map) return read(value, path);
    return Error{ErrorCode::kInvalidArgument, fmt::format("{} is {}, expected a map", path, value.describe()),
                 place(value), fmt::format("write {}: with its settings indented below", path)};
  }

  Status translated(const Alias& alias, const Tree& value) {
    if (!alias.note.empty()) notes_.emplace_back(alias.note);
    auto result = alias.translate(alias.name, value);
    if (!result) return std::move(result).error().at(place(value));
    if (*result) {
      result->value().line = value.line;
      return add(find_setting(alias.path), std::string(alias.name), result->value());
    }
    return Ok{};
  }

  Status add(const Setting* setting, const std::string& name, const Tree& value) {
    for (const Assignment& other : assignments)
      if (other.setting == setting && to_yaml_flow(other.value) != to_yaml_flow(value))
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("{} and {} contradict: {} and {}", other.name, name, other.value.describe(),
                                 value.describe()),
                     place(value), "keep one of them"};
    assignments.push_back({.setting = setting, .name = name, .value = value, .where = place(value)});
    return Ok{};
  }

  [[nodiscard]] std::string place(const Tree& value) const {
    return value.line > 0 ? fmt::format("{} line {}", source_, value.line) : source_;
  }

  const std::string& source_;
  std::vector<std::string>& notes_;
};

}  // namespace

std::string missing_blank_hint(std::string_view key, const Tree& value, std::string otherwise) {
  const size_t colon = key.find(':');
  if (!value.is_null() || colon == std::string_view::npos || colon == 0) return otherwise;
  return fmt::format("write a blank after the colon: {}: {}", key.substr(0, std::min<size_t>(colon, 60)),
                     key.substr(colon + 1, 60));
}

Result<std::vector<Assignment>> read_assignments(const Tree& document, const std::string& source,
                                                 std::vector<std::string>& notes) {
  if (document.is_null()) return std::vector<Assignment>{};
  if (document.kind != Tree::Kind::kMap)
    return Error{ErrorCode::kInvalidArgument,
                 "a run file is a map of settings, this is " + document.describe(), source,
                 "start with 'model:' and 'data:'"};
  Reader reader(source, notes);
  PLIMSOLL_TRY(reader.read(document, ""));
  return std::move(reader.assignments);
}

std::string alias_markdown() {
  std::string out =
      "## Names from transformers\n\n"
      "Understood at the top of a run file, under `training`, or in the setting's own section. Settings of "
      "`training` may stand at the\n"
      "top as well. Where `per_device_train_batch_size` is given and `global_batch_size` is not, the global "
      "batch is its product with\n"
      "`gradient_accumulation_steps`.\n\n"
      "| name | setting |\n| --- | --- |\n";
  for (const Alias& alias : kAliases)
    out += fmt::format("| `{}` | {} |\n", alias.name,
                       alias.path.empty() ? "accepted, without effect" : fmt::format("`{}`", alias.path));
  return out;
}

}  // namespace plimsoll
