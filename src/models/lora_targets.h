// Resolves the modules that LoRA settings name: those that get an adapter, those that are saved whole.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "models/lora.h"

namespace plimsoll::models {

/// A module that may have an adapter.
struct LoraModule {
  std::string name;
  bool is_head = false;   ///< of the vocabulary or of labels: all-linear leaves it out
  bool is_table = false;  ///< an embedding: all-linear leaves it out
};

/// "a.b.weight" -> "a.b".
std::string module_of(std::string_view tensor);

/// Answers for one spec over one model; keeps what names matched.
class LoraTargets {
 public:
  LoraTargets(const Model& model, const LoraSpec& spec, std::string_view model_type);

  /// Errors: kInvalidArgument naming the setting: no modules named, a pattern that is none.
  [[nodiscard]] Status check() const;
  /// Modules that are trained whole: what the spec says, and a classifier's head.
  [[nodiscard]] const std::vector<std::string>& saved() const { return saved_; }
  /// Whether the module gets an adapter.
  bool takes(const LoraModule& module);
  /// Names and patterns of the spec that match nothing, with the nearest that would, a kInvalidArgument each;
  /// after takes() was asked of all modules. `adapted` are those that have an adapter.
  [[nodiscard]] std::vector<Error> unmatched(const std::set<std::string>& adapted) const;
  /// Errors: kInvalidArgument for an entry of modules_to_save that takes what has an adapter.
  [[nodiscard]] Status check_apart(const std::set<std::string>& adapted) const;
  /// Of a spec that gives no module an adapter.
  [[nodiscard]] Error nothing_adapted() const;
  /// Of a tied head, or of the embedding that it is, in modules_to_save.
  [[nodiscard]] Error tied(const std::string& name) const;

 private:
  [[nodiscard]] bool matches_targets(const std::string& module);
  [[nodiscard]] bool is_in_layers(const std::string& module) const;
  [[nodiscard]] std::vector<std::string> linear_names() const;
  [[nodiscard]] std::vector<std::string> modules() const;
  void add_unmatched_layers(std::vector<Error>& errors) const;

  const Model& model_;
  const LoraSpec& spec_;
  ModuleNames targets_;
  bool all_linear_ = false;
  std::vector<std::string> saved_;
  std::set<std::string> matched_;      ///< of targets_
  std::vector<std::string> targeted_;  ///< modules that targets_ names, with an adapter or without
};

}  // namespace plimsoll::models
