// Puts exchanges between ranks on a queue of their own, and, where that is asked for, where kernels compute
// something else meanwhile:
//
//   dw1 ─ exchange ─ dw2 ─ exchange ─ sum_ranks ─ all_gather ─ dw3 ─ …     a gradient travels behind the next
//   unshard w2 ─ linear w1 ─ unshard w3 ─ linear w2 ─ …                    weights come before they are read
#pragma once

#include "ir/graph.h"

namespace plimsoll::passes {

/// Puts ops between ranks on ir::kNetworkQueue. `early`: an exchange of a gradient begins where the gradient
/// is complete, and its sum is taken later, when as much has begun as one block's gradients are, or when it
/// is needed; weights that ranks share are gathered before they are needed, as many as one block has. So up
/// to a block's gradients and a block's weights more are alive. Changes no bit: every sum is what it was.
/// Deterministic, so that all ranks have one order.
void overlap_ranks(ir::Graph& graph, bool early);

}  // namespace plimsoll::passes
