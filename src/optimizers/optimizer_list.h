// The interface of an optimizer, and the list of optimizers. A new one adds its file's function at the end of
// this header.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "optimizers/optimizer.h"

namespace plimsoll::optimizers {

/// What an optimizer chooses a parameter's rule by.
struct Ruled {
  ir::Shape shape;
  ir::ParameterKind kind = ir::ParameterKind::kLinear;
  bool is_hidden = false;  ///< of a repeated block
  bool momentum = false;   ///< as OptimizerOptions::momentum
};

/// A name of training.optimizer. The arithmetic is a rule of ops/update_rules.h or ops/tensor_rules.h.
struct OptimizerDef {
  std::string_view name;
  /// The rule of a parameter, by name; empty where there is none for its kind. All rules that it may name
  /// find their columns in the one table.
  std::string_view (*rule)(const Ruled& parameter) = nullptr;
  int64_t num_fields = 0;  ///< columns of the table
  /// Writes a group's row of the table; `weight_decay` is that group's.
  void (*write_row)(const StepHyper& hyper, double weight_decay, float* row) = nullptr;
  bool decays = true;           ///< weight decay means something
  double default_decay = 0.01;  ///< where none is given
  double default_beta2 = 0.999;
  /// Whether the update may treat tensors that lie one behind the other in a storage, rows each, as one;
  /// null: each is told by its rows.
  bool (*lie_together)(std::span<const ir::Shape> tensors) = nullptr;
  /// What it reads of training.*, beside the rate and the decay, which is nobody else's without a note. A
  /// name that ends in a dot is a section of its own: there a setting is refused with another optimizer.
  std::span<const std::string_view> settings = {};

  [[nodiscard]] bool reads(std::string_view setting) const {
    return std::find(settings.begin(), settings.end(), setting) != settings.end();
  }
  [[nodiscard]] bool has_betas() const { return reads("adam_beta1"); }
};

/// Codes of 8 bits: tensors of fewer elements keep f32 moments (bitsandbytes' min_8bit_size).
inline constexpr int64_t kLeastCodedElements = 4096;
/// As OptimizerDef::lie_together where moments are codes: all small even side by side; or all large, and each
/// but the last of whole blocks.
bool lie_together_in_blocks(std::span<const ir::Shape> tensors);

/// Null where there is none of that name.
const OptimizerDef* find_optimizer(std::string_view name);

// Each file <name>.cpp exports its definitions through <name>_optimizers().
using OptimizerGroup = std::span<const OptimizerDef>;
OptimizerGroup adafactor_optimizers();
OptimizerGroup adamw_8bit_optimizers();
OptimizerGroup adamw_optimizers();
OptimizerGroup lion_optimizers();
OptimizerGroup muon_optimizers();
OptimizerGroup sgd_optimizers();
inline constexpr std::array kOptimizerFiles = {adamw_optimizers,      sgd_optimizers,       lion_optimizers,
                                               adamw_8bit_optimizers, adafactor_optimizers, muon_optimizers};

/// Every definition, in the order of the list.
template <typename Visit>
void for_each_optimizer(Visit visit) {
  for (const auto file : kOptimizerFiles)
    for (const OptimizerDef& def : file()) visit(def);
}

}  // namespace plimsoll::optimizers
