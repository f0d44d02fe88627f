// Resident and swapped bytes of this process.
#pragma once

#include <cstdint>

namespace plimsoll {

/// VmRSS; 0 where the kernel does not say. Neither allocates.
int64_t resident_bytes();
/// VmSwap: pages of this process in swap; 0 where there is none, or the kernel does not say.
int64_t swapped_bytes();
/// Of `wanted` bytes of address space, how much the system would give this process now: limits of the address
/// space (ulimit -v) and of what may be committed. Nothing is touched or kept. To within 1 MiB.
int64_t reservable_bytes(int64_t wanted);

}  // namespace plimsoll
