// Reverse-mode differentiation: appends the backward ops of a program to it.
//
//   forward  x ──► linear ──► add ──► cross_entropy ──► loss
//                    │w        ▲ x
//   backward       dw ◄── dy ──┴──► dx, summed in the order in which the walk meets the uses, last use first
#pragma once

#include <vector>

#include "base/result.h"
#include "ir/graph.h"

namespace plimsoll::passes {

struct AutodiffOptions {
  ir::ValueId loss = {};
  std::vector<ir::ValueId> wrt = {};  ///< whose cotangents are wanted
  /// Cotangent of `loss`. Absent: `loss` is a result of cross_entropy or head_loss, which know theirs
  /// (their grad_scale operand).
  ir::ValueId seed = {};
};

/// Both lists run parallel to AutodiffOptions::wrt.
struct AutodiffReport {
  std::vector<ir::ValueId> cotangents =
      {};  ///< summed over the uses; invalid where the loss does not depend on it
  /// One for each use, in the order of their sum, so that accumulation can keep an accumulator for each.
  std::vector<std::vector<ir::ValueId>> contributions = {};
};

/// Walks the ops backwards from `loss` and appends what their OpDef::vjp gives, each under its forward op's
/// layer. Contributions to one value are added as they arrive: ((c0 + c1) + c2). What nobody uses is left to
/// dead code. Errors: kInvalidArgument where an op between `wrt` and `loss` has no derivative, or where the
/// seed is missing.
Result<AutodiffReport> autodiff(ir::Graph& graph, const AutodiffOptions& options);

}  // namespace plimsoll::passes
