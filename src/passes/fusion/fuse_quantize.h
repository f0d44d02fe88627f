// Quantises where a value is computed, and makes both copies of a value at once:
//
//   norm ─► y ─► quantize_operand ─► codes, scales        ==>  norm_quantize ─► codes, scales
//   dy ─┬► quantize_operand ─► codes, scales              ==>  quantize_operand {both}
//       └► quantize_operand {transposed} ─► codes_t, scales_t
//
// y, which nothing else reads, has no memory. Forward and backward stay apart: what backward quantises of a
// value that forward has made lives no longer for it. Behind recompute; results are bit-identical.
#pragma once

#include <span>

#include "passes/rewriter.h"

namespace plimsoll::passes {

struct FuseQuantizeOptions {
  std::span<const ir::ValueId> keep = {};
  ir::OpId last_forward_op = {};  ///< invalid: all of the program is forward
};
struct FuseQuantizeReport {
  Replaced replaced = {};
  size_t fused = 0, paired = 0;  ///< ops that compute and quantise, and that make both copies
};

/// Linear time.
Result<FuseQuantizeReport> fuse_quantize(ir::Graph& graph, const FuseQuantizeOptions& options);

}  // namespace plimsoll::passes
