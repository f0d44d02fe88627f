// Names of modules ("model.layers.0.self_attn.q_proj") against what PEFT's settings say of them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "models/lora.h"

namespace plimsoll::models {

/// Errors: kInvalidArgument for a text that is no regular expression, as that of `setting`.
Status check_pattern(std::string_view setting, const std::string& pattern);

/// target_modules where none are given: PEFT's for the model_type. Empty for a family that it has none for.
std::vector<std::string> default_target_modules(std::string_view model_type);

/// "a.b.c" -> "c".
std::string last_part(std::string_view name);
/// Whether `name` is the module or what it ends with behind a dot.
bool names_module(std::string_view name, std::string_view module);
/// The same of any of a list, or the pattern's match of the whole name.
bool matches(const ModuleNames& names, const std::string& module);
/// Whether a module is one that `name` names, or lies in one.
bool is_within(std::string_view module, std::string_view name);
/// Whether an entry of modules_to_save takes the module, or one that it lies in. PEFT takes each module whose
/// name ends with the entry, wherever in the name that begins: "norm" takes input_layernorm too.
bool is_saved_by(std::string_view module, std::string_view entry);
/// The number of the layer that a module is in: behind one of `layers` ("h", "layers"), or the first number
/// between dots where none are given.
std::optional<int64_t> layer_index(const std::string& module, const std::vector<std::string>& layers);
/// What stands before the first number of a module's name: "h", "layers". Empty where there is none.
std::string layers_name(const std::string& module);

/// Whether a pattern matches the name's end, from a dot or from the start.
bool matches_end(const std::string& pattern, const std::string& module);
/// What the first pattern that matches says.
template <typename T>
std::optional<T> by_pattern(const std::vector<std::pair<std::string, T>>& patterns,
                            const std::string& module) {
  for (const auto& [pattern, value] : patterns)
    if (matches_end(pattern, module)) return value;
  return std::nullopt;
}

}  // namespace plimsoll::models
