// The optimizer spread over backward: each update stands where its gradient is complete, so that gradients
// are not all alive at backward's end.
//
//   dW1  dx1  dW0  norm  update W1, W0      ==>      dW1  dx1  squares, update W1  dW0  squares, update W0
//   norm
//             └ reads W1
#pragma once

#include <cstddef>

#include "base/result.h"
#include "ir/graph.h"

namespace plimsoll::passes {

struct OptimizerInBackwardReport {
  size_t moved = 0;  ///< ops of the update that stand before the end of backward now
};

/// Ops of the update (`ir::kUpdateBlock`) that touch a gradient, and what follows of them, move as far up as
/// operands and storages let them: behind the last read of the parameter, clones' reads and the second use of
/// a tied table included. All else stays in its order; the same bits. What the update does with all gradients
/// first (a norm to clip by) is not this pass's to take away: updates then stay behind it.
Result<OptimizerInBackwardReport> optimizer_in_backward(ir::Graph& graph);

}  // namespace plimsoll::passes
