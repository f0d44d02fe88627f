// The queue on which the ranks of a run exchange bytes, beside those of ir/graph.h.
#pragma once

#include "ir/graph.h"

namespace plimsoll::ir {

/// Of ops between ranks (OpDef::traffic), which all ranks have there in the same order. Its kernels are the
/// device's. Its name is "network".
inline constexpr Queue kNetworkQueue{4};
/// The queues of a device, this one too.
inline constexpr size_t kNumAllQueues = 5;
static_assert(static_cast<size_t>(kNetworkQueue) == kNumQueues && kNumAllQueues == kNumQueues + 1);

}  // namespace plimsoll::ir
