// Stores a norm's output in the precision that its readers round it to, where products are all that read it.
//
//   sum ─► rms_norm ─► y f32 ─► linear {precision=bf16}
//   ==>  sum ─► rms_norm {out=bf16} ─► y bf16 ─► linear {precision=bf16}
#pragma once

#include <span>
#include <vector>

#include "passes/rewriter.h"

namespace plimsoll::passes {

struct ShortNormsOptions {
  std::span<const ir::ValueId> keep = {};
};
struct ShortNormsReport {
  std::vector<ir::OpId> shortened = {};  ///< norms whose output is stored so
};

/// Runs behind autodiff and recompute, when every reader is there. The rounding only moves from the readers'
/// packing to the norm's store, and their own results keep their dtypes: the same bits, half the bytes of y.
/// Where readers disagree, or another op reads y, it stays f32. Linear time.
Result<ShortNormsReport> half_precision_norms(ir::Graph& graph, const ShortNormsOptions& options);

}  // namespace plimsoll::passes
