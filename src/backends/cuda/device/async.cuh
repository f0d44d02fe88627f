// Copies from global to shared memory that the threads do not wait for (cp.async, sm_80 and later). A thread
// issues copies, closes them into a group, and waits until all but the last groups of its own have arrived;
// the block's barrier then shows them to the other threads. On the host twin a copy arrives only when its
// group is waited for; until then its place holds NaNs.

#pragma once

#include "backends/cuda/device/mma.cuh"

namespace plimsoll::cuda {

// 16 bytes, both addresses multiples of 16; zeros where not `given`, and nothing is read.
__device__ __forceinline__ void async_copy16(SharedAt to, const void* from, bool given) {
#ifdef PLIMSOLL_HOST_TWIN
  twin::async_copy(to, from, 16, given ? 16 : 0);
#else
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(given ? 16 : 0)
               : "memory");
#endif
}
// 4 bytes.
__device__ __forceinline__ void async_copy4(SharedAt to, const void* from, bool given) {
#ifdef PLIMSOLL_HOST_TWIN
  twin::async_copy(to, from, 4, given ? 4 : 0);
#else
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(given ? 4 : 0)
               : "memory");
#endif
}
// Closes the copies issued since the last call into a group, which may be empty.
__device__ __forceinline__ void async_close() {
#ifdef PLIMSOLL_HOST_TWIN
  twin::async_commit();
#else
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
// Until all groups but the last kGroups have arrived.
template <int kGroups>
__device__ __forceinline__ void async_wait() {
#ifdef PLIMSOLL_HOST_TWIN
  twin::async_wait(kGroups);
#else
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
#endif
}

}  // namespace plimsoll::cuda
