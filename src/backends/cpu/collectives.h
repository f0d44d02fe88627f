// Ops between ranks on the CPU: which bytes of their operands go through the device's communicator.
#pragma once

#include "backends/cpu/kernel.h"
#include "runtime/communicator.h"

namespace plimsoll::cpu {

/// Whether the op talks to other ranks.
bool is_collective(const ir::Op& op);

/// Runs such an op to its end. Allocates nothing. Errors: the communicator's.
Status run_collective(const KernelCall& call, runtime::Communicator& communicator);

}  // namespace plimsoll::cpu
