// Which layers a program computes again: the field's policies, as values that are dropped and rounds.
//
//   full          every block from its input          attention, mlp   that part of every block
//   every n       the n-th, 2n-th, … block            selective        of each block the part that frees most
//   for its cost segments k    k runs of consecutive blocks, each kept by the input of its first layers by
//   name: "layers.3", "layers.3.mlp", "layers.*.mlp", and runs: "layers.0..layers.3"
//
// Sources: Chen et al. 2016, arXiv:1604.06174 (segments, and their square root); Korthikanti et al. 2022,
// arXiv:2205.05198 (parts of a block).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "passes/recompute.h"

namespace plimsoll::passes {

struct RecomputePolicy {
  enum class Kind : uint8_t { kNone, kFull, kEvery, kSegments, kAttention, kMlp, kSelective, kLayers };
  Kind kind = Kind::kNone;
  int64_t count = 0;  ///< of kEvery and kSegments; 0 segments: the root of the number of blocks
  std::vector<std::string> layers = {};  ///< fnmatch patterns over the names of blocks and their parts
  bool operator==(const RecomputePolicy&) const = default;
};

/// What is computed again as one, from what enters it: a block, a part of one, or a run of blocks.
struct RecomputeUnit {
  int32_t first = 0, last = 0;  ///< blocks
  std::string part = {};        ///< the part's own name, "mlp"; empty: all of it
  std::string name = {};        ///< as in `layers`
};

/// The blocks of a program and their parts, in order; first and last are the same.
std::vector<RecomputeUnit> recomputable_layers(const ir::Graph& graph);

/// What the policy means for this program; a block that is named takes in its parts. Errors:
/// kInvalidArgument for a pattern that matches nothing, for more segments or a larger n than there are
/// blocks, for a part that no block has.
Result<std::vector<RecomputeUnit>> recompute_units(const ir::Graph& graph, ir::OpId last_forward_op,
                                                   const RecomputePolicy& policy);

/// For `recompute`. A unit's input stays: the values that enter it, or, where they enter a norm that adds
/// them, their sum. So a chain of units is kept by one value each.
RecomputeOptions recompute_values(const ir::Graph& graph, ir::OpId last_forward_op,
                                  const std::vector<RecomputeUnit>& units);

/// Of what `units` drop: bytes that backward would have kept, nearly free values left out; and what their
/// clones do.
struct RecomputeGain {
  int64_t bytes = 0;
  ir::Cost cost = {};
};
RecomputeGain recompute_gain(const ir::Graph& graph, ir::OpId last_forward_op, const RecomputeUnit& unit);

}  // namespace plimsoll::passes
