// Selects the trained tensors of a model and their hyper-parameters: patterns over their names.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "models/model.h"

namespace plimsoll::models {

/// Patterns as base/glob.h reads them, over named_parameters() names; a tied head goes by the embedding's.
struct Selection {
  std::vector<std::string> freeze = {};
  std::vector<std::string> unfreeze = {};             ///< over freeze
  std::vector<std::vector<std::string>> groups = {};  ///< of each, its patterns; the first that matches wins
  /// Whether tensors that learn may lie one behind the other in a storage; empty: they may.
  std::function<bool(std::span<const ir::Shape>)> lie_together = {};
};

/// Divides the model accordingly. Errors: kInvalidArgument for a pattern that matches nothing (with the
/// nearest names), or where nothing is left to train.
Status select(Model& model, const Selection& selection);

}  // namespace plimsoll::models
