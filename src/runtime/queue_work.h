// A record of the work of a device's queues: how much of its copies runs beside its kernels.
#pragma once

#include <cstdint>

#include "ir/graph.h"

namespace plimsoll::runtime {

/// A kernel, copy or fill that a queue has gone through.
struct QueueWork {
  const ir::Op* op = nullptr;  ///< null: of no program, such as inputs
  ir::Queue queue = ir::Queue::kCompute;
  bool is_copy = false;
  int64_t bytes = 0;              ///< of a copy or a fill
  double start = 0, seconds = 0;  ///< by now_seconds
};

}  // namespace plimsoll::runtime
