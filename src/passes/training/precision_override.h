// Matches patterns of precision overrides against ops.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ops/rounding.h"

namespace plimsoll::passes {

/// Ops with products (class kLowPrecision) run in `precision` where `pattern` (fnmatch(3): * and ?) matches
/// their name, its beginning up to an underscore (attention: attention_packed too), or some parts in a row of
/// their layer or of the name of a state that they multiply with: "mlp" and "layers.0" are all within,
/// "model" and "model.*" all below it, "down_proj" what has that weight; or where it is the whole name of
/// such a state, with or without ".weight". Of several patterns the first that matches.
struct PrecisionOverride {
  std::string pattern;
  ops::Precision precision;
  bool fp8 = false;  ///< linear maps in FP8, all else in `precision`
  bool operator==(const PrecisionOverride&) const = default;
};

/// What patterns are held against.
struct OpNames {
  /// The op's name; its layer, with what stands before it in the names of its parameters
  /// ("model.layers.0.mlp"); the parameters among its operands, of one that is not the layer's own (a tied
  /// head's) the name without its first part: "model" is not the head.
  std::vector<std::string> by_parts;
  std::vector<std::string> whole;  ///< names in full of those that are not the layer's own
};

/// Names of a graph's ops, as overrides see them.
class OverrideNames {
 public:
  explicit OverrideNames(const ir::Graph& graph) : graph_(graph) {}

  /// Valid until the next call.
  const OpNames& of(const ir::Op& op);

 private:
  std::string full_layer(const std::string& layer) const;

  const ir::Graph& graph_;
  OpNames names_;
  std::map<std::string, std::string, std::less<>> layers_;  // in full, by what ops have
};

/// The pattern against OverrideNames::of an op.
bool matches(std::string pattern, const OpNames& names);

}  // namespace plimsoll::passes
