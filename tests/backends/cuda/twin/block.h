// What the threads of a block share while kernels run on the host: barriers, meetings of a warp's lanes,
// shared memory, and copies that arrive late. The device's sources reach it through cuda_builtins.h; those
// that have no such builtin (device/mma.cuh, device/async.cuh) call it under PLIMSOLL_HOST_TWIN.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace twin {

/// A call in the kernels' text. All that come to a barrier or to a meeting come to the same one.
struct Place {
  const char* file;
  int line;
  bool operator==(const Place& other) const { return file == other.file && line == other.line; }
};
inline Place here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line}; }

struct Votes {
  int any, all, count;
};
/// Waits until every thread of the block that has not returned is here, and gives what they voted.
Votes meet_block(int vote, Place place);

/// Waits until every lane of `mask` that has not returned is here. `out` takes the `bytes` that lane `from`
/// brought, or with `from` < 0 those of all 32 lanes in order. A lane outside the mask, or that has returned,
/// brought nothing: bytes of all ones, which are no number of any type.
void meet_lanes(const void* mine, size_t bytes, uint32_t mask, int from, void* out, Place place);

/// All lanes' values, in the order of lanes.
template <typename T>
std::array<T, 32> warp_exchange(const T& mine, uint32_t mask = 0xffffffffu, Place place = here()) {
  std::array<T, 32> all;
  meet_lanes(&mine, sizeof(T), mask, -1, all.data(), place);
  return all;
}
template <typename T>
T from_lane(const T& mine, uint32_t mask, int from, Place place) {
  T value;
  meet_lanes(&mine, sizeof(T), mask, from & 31, &value, place);
  return value;
}
/// Of the calling thread, in its warp.
int lane();

/// Where `extern __shared__` arrays begin. What follows the bytes that the launch asked for cannot be
/// touched.
void* dynamic_shared();

/// cp.async: what `to` holds is lost now, and `bytes` (4, 8 or 16) arrive when this thread waits for them,
/// the first `given` from `from` as it is then, zeros behind them.
void async_copy(void* to, const void* from, int bytes, int given);
/// cp.async.commit_group.
void async_commit();
/// cp.async.wait_group: all but the last `pending` groups have arrived. async_wait(-1): everything has,
/// committed or not.
void async_wait(int pending);

/// What every kernel begins with: from here on memory holds what the grids before this one left there.
void begin_grid();

/// Ends the launch with an error, as a card does where a kernel traps or breaks a rule.
[[noreturn]] void fail(const char* what, Place place);

}  // namespace twin
