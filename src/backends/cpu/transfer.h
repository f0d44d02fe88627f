// Copies and fills between memory and files.
#pragma once

#include <cstdint>

#include "backends/cpu/disk_memory.h"
#include "backends/cpu/thread_pool.h"

namespace plimsoll::cpu {

/// Where bytes lie: at an address, or in a file.
struct Place {
  std::byte* data = nullptr;
  const DiskMemory* disk = nullptr;
  int64_t offset = 0;  ///< in the file
  ir::MemorySpace space = ir::MemorySpace::kDevice;

  [[nodiscard]] Place behind(int64_t bytes) const {
    return disk == nullptr ? Place{data + bytes, nullptr, 0, space}
                           : Place{nullptr, disk, offset + bytes, space};
  }
};

/// Checks that `bytes` from there lie within the memory, and that the memory is not a null one.
Place place_of(runtime::Location location, Bytes bytes);

/// Ranges do not overlap. Between addresses the pool's threads share the work; null: the caller's alone.
/// Allocates nothing. Errors: kIo of a file.
Status transfer(Place destination, Place source, int64_t bytes, ThreadPool* pool);

/// Repeats the pattern in the byte order of an f32; the last word may be cut. Otherwise as transfer().
Status fill(Place destination, int64_t bytes, uint32_t pattern, ThreadPool* pool);

}  // namespace plimsoll::cpu
