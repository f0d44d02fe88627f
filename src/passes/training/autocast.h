// Gives each op of a forward graph the precision that it runs in, as PyTorch's autocast does: matrix products
// and attention in the low one, norms, statistics and losses in f32, everything else as its operands come.
//
//   x f32 ─► linear ─► y f32     ==>     x f32 ─► linear {precision=bf16, out=bf16} ─► y bf16
//
// Operands of a product are not cast by an op of their own: the kernel rounds them while it packs them, which
// is the same rounding once more for each use and no pass over memory.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "passes/rewriter.h"
#include "passes/training/fp8.h"
#include "passes/training/precision_override.h"

namespace plimsoll::passes {

struct AutocastOptions {
  std::span<const ir::ValueId> keep = {};
  ops::Precision precision = ops::Precision::kF32;  ///< f32: nothing but the overrides
  /// The residual stream in the low precision as well, from the embedding on; PyTorch's autocast leaves it
  /// f32.
  bool short_residual = false;
  std::span<const PrecisionOverride> overrides = {};
  Fp8Settings fp8 = {};  ///< which products it marks for pass fp8, beside the overrides
};

/// What one op runs in, and why, for people.
struct PrecisionChoice {
  std::string op, layer;
  std::string computes;  ///< "bf16 products, f32 sums"; "f32, of f16 operands"; "f32"
  std::string stores;    ///< dtype of the result, of a norm's behind a sum: of what is normed
  std::string sum;       ///< dtype of that sum; empty: there is none
  std::string why;
  int32_t block = ir::kNoBlock;  ///< of the op
  bool operator==(const PrecisionChoice&) const = default;
};
struct AutocastReport {
  Replaced replaced = {};  ///< nothing is; as other passes report it
  std::vector<PrecisionChoice> choices = {};
  std::vector<bool> used = {};          ///< by override: whether it matched an op with products
  std::vector<std::string> names = {};  ///< with overrides: ops with products, their layers, their weights
};

/// Runs behind the forward fusions and before autodiff, whose derivatives take on the precision of their ops.
/// Result types downstream follow by the ops' own rules (ops.h); a state is assigned its own dtype. The bits
/// of f32 programs change, of course. Linear time.
Result<AutocastReport> autocast(ir::Graph& graph, const AutocastOptions& options);

}  // namespace plimsoll::passes
