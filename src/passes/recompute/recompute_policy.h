// Selects the layers that a program recomputes: the field's policies, by name.
//
//   full          every block from its input        attention, mlp   that part of every block
//   every n       the n-th, 2n-th, … block          selective        the part that frees most for its cost
//   segments k    k runs of consecutive blocks, each kept by the input of its first
//   layers        by name: "layers.3", "layers.*.mlp", and runs: "layers.0..layers.3"
//
// Sources: Chen et al. 2016, arXiv:1604.06174 (segments, and their square root); Korthikanti et al. 2022,
// arXiv:2205.05198 (parts of a block).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "passes/recompute/recompute_values.h"

namespace plimsoll::passes {

struct RecomputePolicy {
  enum class Kind : uint8_t { kNone, kFull, kEvery, kSegments, kAttention, kMlp, kSelective, kLayers };
  Kind kind = Kind::kNone;
  int64_t count = 0;  ///< of kEvery and kSegments; 0 segments: the root of the number of blocks
  std::vector<std::string> layers = {};  ///< fnmatch patterns over the names of blocks and their parts
  std::vector<int32_t> always = {};      ///< blocks that are computed again whatever else the policy takes
  bool operator==(const RecomputePolicy&) const = default;
};

/// What the policy means for this program, in order; a block that is named takes in its parts. Errors:
/// kInvalidArgument for a pattern that matches nothing, for more segments or a larger n than there are
/// blocks, for a part that no block has.
Result<std::vector<RecomputeUnit>> recompute_units(const RecomputeAnalysis& program,
                                                   const RecomputePolicy& policy);

}  // namespace plimsoll::passes
