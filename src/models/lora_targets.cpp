#include "models/lora_targets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "io/suggest.h"
#include "models/module_names.h"

namespace plimsoll::models {
namespace {

constexpr const char* kAllLinear = "all-linear";

Error refused(std::string what, std::string hint) {
  return {ErrorCode::kInvalidArgument, std::move(what), {}, std::move(hint)};
}

Error unmatched(const char* setting, const std::string& name, const std::vector<std::string>& known) {
  return refused(
      fmt::format("{}: no {} matches '{}'", setting,
                  std::string_view(setting).ends_with("save") ? "module" : "linear map", name.substr(0, 100)),
      nearest_hint(name, known));
}

template <typename T>
Status check_patterns(std::string_view setting, const std::vector<std::pair<std::string, T>>& patterns) {
  for (const auto& [pattern, value] : patterns) PLIMSOLL_TRY(check_pattern(setting, pattern));
  return Ok{};
}

}  // namespace

std::string module_of(std::string_view tensor) { return std::string(tensor.substr(0, tensor.rfind('.'))); }

LoraTargets::LoraTargets(const Model& model, const LoraSpec& spec, std::string_view model_type)
    : model_(model), spec_(spec), targets_(spec.target_modules), saved_(spec.modules_to_save) {
  if (!targets_.given()) targets_.names = default_target_modules(model_type);
  all_linear_ = targets_.names.size() == 1 && targets_.names.front() == kAllLinear;
  if (model.num_labels() > 0 && std::find(saved_.begin(), saved_.end(), "score") == saved_.end())
    saved_.emplace_back("score");
}

Status LoraTargets::check() const {
  if (!targets_.given())
    return refused("lora.target_modules names no modules, and PEFT has no defaults for this family",
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
  if (matches(spec_.exclude_modules, module.name)) return false;
  for (const std::string& saved : saved_)
    if (is_within(module.name, saved)) return false;
  if (all_linear_) return !module.is_head && !module.is_table;
  if (!matches_targets(module.name)) return false;
  if (targets_.is_pattern || spec_.layers_to_transform.empty()) return true;
  const auto layer = layer_index(module.name, spec_.layers_pattern);
  return layer && std::find(spec_.layers_to_transform.begin(), spec_.layers_to_transform.end(), *layer) !=
                      spec_.layers_to_transform.end();
}

bool LoraTargets::matches_targets(const std::string& module) {
  if (targets_.is_pattern) return matches(targets_, module);
  bool any = false;
  for (const std::string& name : targets_.names)
    if (names_module(name, module)) matched_.insert(name), any = true;
  return any;
}

Status LoraTargets::check_matched(bool strict, bool any_adapter) const {
  if (strict && !targets_.is_pattern && !all_linear_)
    for (const std::string& name : targets_.names)
      if (!matched_.contains(name)) return unmatched("lora.target_modules", name, linear_names());
  if (any_adapter) return Ok{};
  if (targets_.is_pattern) return unmatched("lora.target_modules", targets_.names.front(), linear_names());
  return refused(
      "lora gives no module an adapter: what target_modules names is left out by exclude_modules, "
      "modules_to_save or layers_to_transform",
      fmt::format("the linear maps are {}", fmt::join(linear_names(), ", ")));
}

std::vector<std::string> LoraTargets::linear_names() const {
  std::vector<std::string> names;
  for (const Parameter& p : model_.parameters())
    for (const ParameterView& view : p.views)
      if (std::string last = last_part(module_of(view.name));
          p.shape.rank() == 2 && !p.is_table && std::find(names.begin(), names.end(), last) == names.end())
        names.push_back(std::move(last));
  return names;
}

Error LoraTargets::unknown_saved(const std::string& name) const {
  std::set<std::string> names;
  for (const Parameter& p : model_.parameters())
    for (const ParameterView& view : p.views) names.insert(last_part(module_of(view.name)));
  return unmatched("lora.modules_to_save", name, {names.begin(), names.end()});
}

Error LoraTargets::tied(const std::string& name) const {
  const auto tied = *model_.tied_head();
  return refused(
      fmt::format("'{}' is tied ({} is {}): adapters cannot part the two", name, tied.head, tied.embedding),
      "leave it out, or untie them: model.overrides.tie_word_embeddings=false with a model whose weights "
      "have both");
}

}  // namespace plimsoll::models
