// Backward twice: once for what all gradients make together, the norm to clip by, once for the updates. So an
// optimizer in backward never holds more than the gradients at hand.
//
//   loss ─► dW1 ─► dW0     squares ─► norm ─► clip     update W1, W0
//                                    ==>
//   loss ─► dW1 ─► dW0     squares ─► norm ─► clip     loss' ─► dW1' ─► dW0'     update W1, W0 by dW1', dW0'
#pragma once

#include <cstddef>

#include "base/result.h"
#include "ir/graph.h"

namespace plimsoll::passes {

struct SecondBackwardOptions {
  /// The op that gives the loss, and a head's gradients with it: backward begins with it.
  ir::OpId last_forward_op = {};
};
struct SecondBackwardReport {
  size_t clones = 0;  ///< ops
};

/// Every op of backward once more behind the first, marked `recomputed`, clones of forward ops among them;
/// what norms the gradients goes on reading the first ones, updates read the second. What forward keeps stays
/// until the second has read it. The same ops on the same bits give the same bits. Run optimizer_in_backward
/// behind it.
Result<SecondBackwardReport> second_backward(ir::Graph& graph, const SecondBackwardOptions& options);

}  // namespace plimsoll::passes
