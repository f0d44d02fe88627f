// Keys to settings: by their own path, by transformers' name, or, of training, by the last name alone.
// transformers' names are understood at the top of a run file, under `training`, and in the section of the
// setting that they mean.
#include "settings/run_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "io/suggest.h"
#include "settings/harmless_keys.h"
#include "settings/settings_alias.h"

namespace plimsoll::settings {
namespace {

std::string section_of(std::string_view path) { return std::string(path.substr(0, path.find('.'))); }

bool is_section(const std::string& path) {
  const std::string prefix = path + ".";
  return std::any_of(settings().begin(), settings().end(),
                     [&](const Setting& s) { return s.path.starts_with(prefix); });
}

/// A dotted name in two: the section and what stands in it.
struct DottedName {
  explicit DottedName(std::string_view path)
      : section(path.substr(0, path.rfind('.') == std::string_view::npos ? 0 : path.rfind('.'))),
        last(path.substr(path.rfind('.') + 1)) {}
  std::string_view section, last;
};

/// What other programs and scripts call a setting, where that is not near its name; in a section where only
/// there it means that.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"lr", "training.learning_rate"},
    {"batch_size", "training.global_batch_size"},
    {"bs", "training.global_batch_size"},
    {"seq_len", "data.sequence_length"},
    {"seq_length", "data.sequence_length"},
    {"max_seq_len", "data.sequence_length"},
    {"block_size", "data.sequence_length"},
    {"context_length", "data.sequence_length"},
    {"dataset", "data.train"},
    {"dataset_path", "data.train"},
    {"data_path", "data.train"},
    {"val_data", "data.eval"},
    {"grad_accum", "training.gradient_accumulation_steps"},
    {"grad_accum_steps", "training.gradient_accumulation_steps"},
    {"accumulate_grad_batches", "training.gradient_accumulation_steps"},
    {"grad_clip", "training.max_grad_norm"},
    {"clip_grad_norm", "training.max_grad_norm"},
    {"steps", "training.max_steps"},
    {"num_steps", "training.max_steps"},
    {"max_iters", "training.max_steps"},
    {"epochs", "training.num_epochs"},
    {"epoch", "training.num_epochs"},
    {"scheduler", "training.lr_scheduler"},
    {"wd", "training.weight_decay"},
    {"mixed_precision", "training.precision"},
    {"dtype", "training.precision"},
    {"torch_dtype", "training.precision"},
    {"model_name", "model.path"},
    {"model_id", "model.path"},
    {"base_model", "model.path"},
    {"out_dir", "output.dir"},
    {"save_dir", "output.dir"},
    {"num_threads", "runtime.threads"},
    {"max_memory", "memory.budget"},
    {"lora.rank", "lora.r"},
    {"rank", "lora.r"},
    {"lora_r", "lora.r"},
    {"lora_rank", "lora.r"},
    {"lora.alpha", "lora.lora_alpha"},
    {"lora.dropout", "lora.lora_dropout"},
    {"lora.targets", "lora.target_modules"},
    {"lora.modules", "lora.target_modules"},
    {"lora_target_modules", "lora.target_modules"},
    {"lora_modules_to_save", "lora.modules_to_save"},
    {"lora.path", "lora.adapter"},
    {"lora.dir", "lora.adapter"},
    {"model.name", "model.path"},
    {"model.id", "model.path"},
    {"model.dir", "model.path"},
    {"model.folder", "model.path"},
    {"model.model", "model.path"},
    {"model.checkpoint", "model.path"},
    {"data.path", "data.train"},
    {"data.file", "data.train"},
    {"data.files", "data.train"},
    {"data.dir", "data.train"},
    {"data.name", "data.train"},
    {"data.valid", "data.eval"},
    {"data.validation", "data.eval"},
    {"data.val", "data.eval"},
    {"data.test", "data.eval"},
    {"data.max_length", "data.sequence_length"},
    {"data.batch_size", "training.global_batch_size"},
    {"output.path", "output.dir"},
    {"output.folder", "output.dir"},
    {"output.name", "output.dir"},
    {"training.device", "runtime.device"},
    {"device", "runtime.device"},
    {"gpu", "runtime.device"},
    {"card", "runtime.profile"},
    {"threads", "runtime.threads"},
    {"num_cpus", "runtime.threads"}};

/// The setting, section or transformers' name that `path` may have meant, by its last name first and its
/// section then, a name at the top meaning the nearest to it; empty where none is near.
std::string nearest_setting(const std::string& path) {
  constexpr int kAnotherSection = 3;  // an edit of the last name weighs more than any of the section
  std::string best;
  int least = 1 << 20;
  const DottedName wanted(path);
  for (const std::string_view name : {std::string_view(path), wanted.last})
    for (const auto& [theirs, ours] : kOtherNames)
      if (theirs == name) return std::string(ours);
  const auto consider = [&](std::string_view candidate) {
    const DottedName known(candidate);
    if (!io::is_near(wanted.last, known.last)) return;
    const auto depth = static_cast<int>(std::count(candidate.begin(), candidate.end(), '.'));
    const int sections = wanted.section.empty()
                             ? std::min(depth, kAnotherSection)
                             : io::edit_distance(wanted.section, known.section, kAnotherSection);
    const int distance = (kAnotherSection + 1) * io::edit_distance(wanted.last, known.last) + sections;
    if (distance >= least) return;
    least = distance;
    best = candidate;
  };
  for (const Setting& setting : settings()) consider(setting.path);
  for (const Setting& setting : settings())
    for (size_t dot = setting.path.find('.'); dot != std::string::npos; dot = setting.path.find('.', dot + 1))
      consider(std::string_view(setting.path).substr(0, dot));
  for (const Alias& alias : aliases()) consider(alias.name);
  constexpr int kTypingErrors = 3;  // a key that says nothing is not what was meant, unless it is mistyped
  for (const HarmlessKey& key : harmless_keys())
    if (io::edit_distance(path, key.name, kTypingErrors) < kTypingErrors) consider(key.name);
  return best;
}

std::string unknown_key_hint(const std::string& path) {
  const std::string nearest = nearest_setting(path);
  return nearest.empty() ? "plimsoll train --help lists the settings" : "did you mean " + nearest + "?";
}

class Reader {
 public:
  Reader(const std::string& source, Findings& found)
      : source_(source), found_(found), errors_(found.errors) {}

  void read(const io::Tree& map, const std::string& prefix) {
    for (const auto& [key, value] : map.members) {
      if (errors_.size() >= kMostErrors) return;
      member(prefix, key, value);
    }
  }

  std::vector<Assignment> assignments;

 private:
  void member(const std::string& prefix, const std::string& key, const io::Tree& value) {
    const std::string path = prefix.empty() ? key : prefix + "." + key;
    const HarmlessKey* harmless = prefix.empty() || prefix == "training" ? find_harmless_key(key) : nullptr;
    if (harmless && value.line == 0 && key == "max_steps" && is_one_of_values(harmless->values, value))
      return add(find_setting("training.max_steps"), path, io::Tree{});  // over a file's own
    if (harmless && says_nothing(*harmless, value)) return;
    // TRL's true and false, and YAML 1.1's no, stand where the setting's words do.
    if (const Alias* alias = find_alias(key);
        alias && alias->path == path && value.kind == io::Tree::Kind::kBool)
      return translated(*alias, value);
    if (const Setting* setting = find_setting(path)) return add(setting, path, value);
    if (is_section(path)) return section(path, value);
    if (const Alias* alias = find_alias(key);
        alias && (prefix.empty() || prefix == "training" || prefix == section_of(alias->path) ||
                  prefix == DottedName(alias->path).section))
      return translated(*alias, value);
    if (prefix.empty()) {
      if (const Setting* setting = find_setting("training." + key)) return add(setting, key, value);
      if (is_section("training." + key)) return section("training." + key, value);
    }
    if (harmless) return errors_.push_back(asks_for_more(*harmless, value, place(value)));
    wrong(value, fmt::format("there is no setting '{}'", path.substr(0, 100)),
          missing_blank_hint(key, value, unknown_key_hint(path)));
  }

  /// Told of once for all of them.
  bool says_nothing(const HarmlessKey& key, const io::Tree& value) {
    if (!is_one_of_values(key.values, value)) return false;
    std::vector<std::string>& said = found_.harmless;
    if (std::find(said.begin(), said.end(), key.name) == said.end()) said.emplace_back(key.name);
    return true;
  }

  void section(const std::string& path, const io::Tree& value) {
    const bool optional_section = path == "lora" || path == "quantization";
    if (optional_section && (value.is_null() || value.kind == io::Tree::Kind::kMap))
      assignments.push_back({.section = path, .name = path, .value = value, .where = place(value)});
    const Setting* fixed = find_setting(path + ".fixed");
    const bool is_map = value.kind == io::Tree::Kind::kMap;
    if (fixed != nullptr && !is_map && !value.is_null()) return add(fixed, path, value);
    // What stands later takes a static value back.
    if (fixed != nullptr && value.find("fixed") == nullptr) add(fixed, path, io::Tree{}, /*implied=*/true);
    if (is_map) return read(value, path);
    if (value.is_null()) return;
    wrong(value, fmt::format("{} is {}, expected a map", path, value.describe()),
          fmt::format("write {}: with its settings indented below", path));
  }

  void translated(const Alias& alias, const io::Tree& value) {
    if (!alias.note.empty()) found_.notes.emplace_back(alias.note);
    auto result = alias.translate(alias.name, value);
    if (!result) {
      errors_.push_back(std::move(result).error().at(place(value)));
    } else if (*result) {
      result->value().line = value.line;
      add(find_setting(alias.path), std::string(alias.name), result->value());
    } else if (!alias.takes_back.empty()) {
      assignments.push_back({.setting = find_setting(alias.path),
                             .name = std::string(alias.name),
                             .value = io::Tree::of(std::string(alias.takes_back)),
                             .takes_back = true});
    }
  }

  void add(const Setting* setting, const std::string& name, const io::Tree& value, bool implied = false) {
    for (Assignment& other : assignments) {
      if (other.setting != setting || other.takes_back ||
          io::to_yaml_flow(other.value) == io::to_yaml_flow(value))
        continue;
      auto both = together(name, value, other.name, other.value);
      if (!both)
        return wrong(value,
                     fmt::format("{} and {} contradict: {} and {}", other.name, name, other.value.describe(),
                                 value.describe()),
                     "keep one of them");
      other.value = std::move(*both);
      return;
    }
    assignments.push_back(
        {.setting = setting, .name = name, .value = value, .where = place(value), .implied = implied});
  }

  void wrong(const io::Tree& value, std::string what, std::string hint) {
    errors_.push_back({ErrorCode::kInvalidArgument, std::move(what), place(value), std::move(hint)});
  }

  [[nodiscard]] std::string place(const io::Tree& value) const {
    return value.line > 0 ? fmt::format("{} line {}", source_, value.line) : source_;
  }

  const std::string& source_;
  Findings& found_;
  std::vector<Error>& errors_;
};

}  // namespace

std::string missing_blank_hint(std::string_view key, const io::Tree& value, std::string otherwise) {
  const size_t colon = key.find(':');
  if (!value.is_null() || colon == std::string_view::npos || colon == 0) return otherwise;
  return fmt::format("write a blank after the colon: {}: {}", key.substr(0, std::min<size_t>(colon, 60)),
                     key.substr(colon + 1, 60));
}

std::vector<Assignment> read_assignments(const io::Tree& document, const std::string& source,
                                         Findings& found) {
  if (document.is_null()) return {};
  if (document.kind != io::Tree::Kind::kMap) {
    found.errors.push_back({ErrorCode::kInvalidArgument,
                            "a run file is a map of settings, this is " + document.describe(), source,
                            "start with 'model:' and 'data:'"});
    return {};
  }
  Reader reader(source, found);
  reader.read(document, "");
  return std::move(reader.assignments);
}

}  // namespace plimsoll::settings
