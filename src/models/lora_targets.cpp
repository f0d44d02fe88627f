#include "models/lora_targets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "io/suggest.h"
#include "models/module_names.h"

namespace plimsoll::models {
namespace {

constexpr const char* kAllLinear = "all-linear";

Error target_refused(std::string what, std::string hint) {
  return {ErrorCode::kInvalidArgument, std::move(what), {}, std::move(hint)};
}

Error unmatched_name(const char* setting, const char* what, const std::string& name,
                     const std::vector<std::string>& known) {
  return target_refused(fmt::format("{}: no {} matches '{}'", setting, what, name.substr(0, 100)),
                        io::nearest_hint(name, known));
}

/// The last parts of modules' names, each once.
std::vector<std::string> last_parts(const std::vector<std::string>& modules) {
  std::vector<std::string> parts;
  for (const std::string& module : modules)
    if (std::string last = last_part(module); std::ranges::find(parts, last) == parts.end())
      parts.push_back(std::move(last));
  return parts;
}

/// PEFT adds both names to the modules that a classifier saves, whichever of them its head has.
bool is_any_heads_name(const Model& model, const std::string& entry) {
  return model.num_labels() > 0 && (entry == "score" || entry == "classifier");
}

template <typename T>
Status check_patterns(std::string_view setting, const std::vector<std::pair<std::string, T>>& patterns) {
  for (const auto& [pattern, value] : patterns) PLIMSOLL_TRY(check_pattern(setting, pattern));
  return Ok{};
}

template <typename T>
void add_unmatched_patterns(const char* setting, const std::vector<std::pair<std::string, T>>& patterns,
                            const std::vector<std::string>& adapted, std::vector<Error>& errors) {
  for (const auto& entry : patterns) {
    const std::string& pattern = entry.first;
    if (std::ranges::none_of(adapted, [&](const auto& module) { return matches_end(pattern, module); }))
      errors.push_back(unmatched_name(setting, "module with an adapter", pattern, last_parts(adapted)));
  }
}

}  // namespace

std::string module_of(std::string_view tensor) { return std::string(tensor.substr(0, tensor.rfind('.'))); }

LoraTargets::LoraTargets(const Model& model, const LoraSpec& spec, std::string_view model_type)
    : model_(model), spec_(spec), targets_(spec.target_modules), saved_(spec.modules_to_save) {
  if (!targets_.given()) targets_.names = default_target_modules(model_type);
  all_linear_ = targets_.names.size() == 1 && targets_.names.front() == kAllLinear;
  const std::string head(model.head_module());
  if (model.num_labels() > 0 && std::find(saved_.begin(), saved_.end(), head) == saved_.end())
    saved_.push_back(head);
}

Status LoraTargets::check() const {
  if (!targets_.given())
    return target_refused("lora.target_modules names no modules, and PEFT has no defaults for this family",
                          "set lora.target_modules to a list of names, or to all-linear");
  if (targets_.is_pattern && !all_linear_)
    PLIMSOLL_TRY(check_pattern("lora.target_modules", targets_.names.front()));
  if (spec_.exclude_modules.is_pattern)
    PLIMSOLL_TRY(check_pattern("lora.exclude_modules", spec_.exclude_modules.names.front()));
  PLIMSOLL_TRY(check_patterns("lora.rank_pattern", spec_.rank_pattern));
  PLIMSOLL_TRY(check_patterns("lora.alpha_pattern", spec_.alpha_pattern));
  for (const std::string& pattern : spec_.layers_pattern)
    PLIMSOLL_TRY(check_pattern("lora.layers_pattern", pattern));
  return Ok{};
}

bool LoraTargets::takes(const LoraModule& module) {
  if (all_linear_ ? module.is_head || module.is_table : !matches_targets(module.name)) return false;
  targeted_.push_back(module.name);
  if (matches(spec_.exclude_modules, module.name)) return false;
  for (const std::string& saved : saved_)
    if (is_within(module.name, saved)) return false;
  return is_in_layers(module.name);
}

bool LoraTargets::is_in_layers(const std::string& module) const {
  if ((targets_.is_pattern && !all_linear_) || spec_.layers_to_transform.empty()) return true;
  const auto layer = layer_index(module, spec_.layers_pattern);
  return layer && std::ranges::find(spec_.layers_to_transform, *layer) != spec_.layers_to_transform.end();
}

bool LoraTargets::matches_targets(const std::string& module) {
  if (targets_.is_pattern) return matches(targets_, module);
  bool any = false;
  for (const std::string& name : targets_.names)
    if (names_module(name, module)) matched_.insert(name), any = true;
  return any;
}

std::vector<Error> LoraTargets::unmatched(const std::set<std::string>& adapted) const {
  std::vector<Error> errors;
  if (!targets_.is_pattern && !all_linear_)
    for (const std::string& name : targets_.names)
      if (!matched_.contains(name))
        errors.push_back(unmatched_name("lora.target_modules", "linear layer", name, linear_names()));
  const std::vector<std::string> all = modules();
  for (const std::string& name : spec_.exclude_modules.names)
    if (std::ranges::none_of(all, [&](const auto& m) {
          return matches({{name}, spec_.exclude_modules.is_pattern}, m);
        }))
      errors.push_back(unmatched_name("lora.exclude_modules", "module", name, last_parts(all)));
  add_unmatched_layers(errors);
  const std::vector<std::string> with_adapter(adapted.begin(), adapted.end());
  add_unmatched_patterns("lora.rank_pattern", spec_.rank_pattern, with_adapter, errors);
  add_unmatched_patterns("lora.alpha_pattern", spec_.alpha_pattern, with_adapter, errors);
  for (const std::string& name : spec_.modules_to_save)
    if (!is_any_heads_name(model_, name) &&
        std::ranges::none_of(all, [&](const auto& m) { return is_saved_by(m, name); }))
      errors.push_back(unmatched_name("lora.modules_to_save", "module", name, last_parts(all)));
  return errors;
}

/// Numbers that no module of target_modules is in, and names that stand before no number.
void LoraTargets::add_unmatched_layers(std::vector<Error>& errors) const {
  if (spec_.layers_to_transform.empty() || targeted_.empty()) return;
  std::set<int64_t> layers;
  std::set<std::string> names;
  for (const std::string& module : targeted_) {
    if (const auto layer = layer_index(module, spec_.layers_pattern)) layers.insert(*layer);
    if (std::string name = layers_name(module); !name.empty()) names.insert(std::move(name));
  }
  for (const std::string& pattern : spec_.layers_pattern)
    if (std::ranges::none_of(targeted_, [&](const auto& m) { return layer_index(m, {pattern}).has_value(); }))
      errors.push_back(
          unmatched_name("lora.layers_pattern", "name of layers", pattern, {names.begin(), names.end()}));
  if (layers.empty() && !spec_.layers_pattern.empty()) return;  // the pattern is what is wrong
  for (const int64_t layer : spec_.layers_to_transform)
    if (!layers.contains(layer))
      errors.push_back(target_refused(
          fmt::format("lora.layers_to_transform: no module of target_modules is in a layer {}", layer),
          layers.empty()
              ? std::string("what target_modules names is in no layer")
              : fmt::format("its modules are in layers {} to {}", *layers.begin(), *layers.rbegin())));
}

Status LoraTargets::check_apart(const std::set<std::string>& adapted) const {
  for (const std::string& entry : saved_)
    for (const std::string& module : adapted)
      if (is_saved_by(module, entry))
        return target_refused(
            fmt::format("lora.modules_to_save: '{}' takes {} as well, which gets an adapter", entry, module),
            "an entry takes every module whose name ends with it: write a longer one, or leave that module "
            "out");
  return Ok{};
}

Error LoraTargets::nothing_adapted() const {
  if (targets_.is_pattern && targeted_.empty())
    return unmatched_name("lora.target_modules", "linear layer", targets_.names.front(), linear_names());
  return target_refused(
      "lora gives no module an adapter: what target_modules names is left out by exclude_modules, "
      "modules_to_save or layers_to_transform",
      fmt::format("the linear layers are {}", fmt::join(linear_names(), ", ")));
}

std::vector<std::string> LoraTargets::linear_names() const {
  std::vector<std::string> names;
  for (const Parameter& p : model_.parameters())
    for (const ParameterView& view : p.views)
      if (std::string last = last_part(module_of(view.name));
          p.kind == ParameterKind::kLinear && std::find(names.begin(), names.end(), last) == names.end())
        names.push_back(std::move(last));
  return names;
}

std::vector<std::string> LoraTargets::modules() const {
  std::vector<std::string> names;
  for (const Parameter& p : model_.parameters())
    for (const ParameterView& view : p.views)
      if (std::string module = module_of(view.name); names.empty() || names.back() != module)
        names.push_back(std::move(module));
  if (const auto tied = model_.tied_head()) names.push_back(module_of(tied->head));
  return names;
}

Error LoraTargets::tied(const std::string& name) const {
  const auto tied = *model_.tied_head();
  return target_refused(
      fmt::format("'{}' is tied ({} is {}): one of two tied weights cannot be trained and saved alone", name,
                  tied.head, tied.embedding),
      "leave it out, or untie them: model.overrides.tie_word_embeddings=false with a model whose weights "
      "have both");
}

}  // namespace plimsoll::models
