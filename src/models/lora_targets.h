// Which of a model's modules LoRA's settings name: those that get an adapter, those that are saved whole.
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
  /// Errors: kInvalidArgument with the nearest names: one of a list that matched nothing (all must where
  /// `strict`), or no adapter at all.
  [[nodiscard]] Status check_matched(bool strict, bool any_adapter) const;
  /// Of a name in modules_to_save that no module has.
  [[nodiscard]] Error unknown_saved(const std::string& name) const;
  /// Of a tied head, or of the embedding that it is, in modules_to_save.
  [[nodiscard]] Error tied(const std::string& name) const;

 private:
  [[nodiscard]] bool matches_targets(const std::string& module);
  [[nodiscard]] std::vector<std::string> linear_names() const;

  const Model& model_;
  const LoraSpec& spec_;
  ModuleNames targets_;
  bool all_linear_ = false;
  std::vector<std::string> saved_;
  std::set<std::string> matched_;
};

}  // namespace plimsoll::models
