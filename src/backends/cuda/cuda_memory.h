// Memory of a card, and of the host beside it.
#pragma once

#include <memory>
#include <mutex>

#include "backends/cuda/api.h"
#include "base/units.h"
#include "runtime/device.h"

namespace plimsoll::cuda {

/// How much of a card's memory its plans have taken.
struct DeviceMemoryCount {
  std::mutex turn;
  int64_t now = 0, peak = 0;

  void add(int64_t bytes) {
    const std::lock_guard lock(turn);
    now += bytes;
    peak = now > peak ? now : peak;
  }
};

/// In the current context. Device memory by cuMemAlloc, pinned memory by cuMemHostAlloc, pageable memory by
/// mapping; all of it is there when this returns. Errors: kIo with the size and what to lower; the disk is
/// refused.
Result<std::unique_ptr<runtime::Memory>> allocate_memory(const Driver& driver, Handle context,
                                                         ir::MemorySpace space, Bytes bytes,
                                                         const std::shared_ptr<DeviceMemoryCount>& count);

}  // namespace plimsoll::cuda
