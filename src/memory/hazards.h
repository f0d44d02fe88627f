// The independent judge of every order of issue: whether work on queues that run beside each other can ever
// read or lose other bytes than meant. It shares no code with a planner and knows neither ops nor tensors.
//
//   step 0  queue 0  writes A [0,64)             step 0 ──► step 1 ──► step 4      one queue: in order
//   step 1  queue 0  records event 0                           ╲
//   step 2  queue 1  waits for event 0                          ▼
//   step 3  queue 1  reads A [0,64) of step 0                 step 2 ──► step 3    behind the event
//   step 4  queue 0  writes A [32,64)            3 and 4: neither comes first, so 4 is refused
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace plimsoll::memory {

/// Bytes [first, end) of a pool: memory that shares no byte with another pool.
struct PoolRange {
  int32_t pool = 0;
  int64_t first = 0;
  int64_t end = 0;
  bool operator==(const PoolRange&) const = default;
};

/// The writer of what a pool holds when a program begins.
inline constexpr int32_t kBeforeProgram = -1;

/// Bytes that a step reads, and the step of which it means to see the content.
struct PoolRead {
  PoolRange bytes;
  int32_t writer = kBeforeProgram;
};

/// Bytes that a step writes. Where it writes over an operand on purpose, `in_place_of` is that read of it; no
/// other operand may lie there.
struct PoolWrite {
  PoolRange bytes;
  int32_t in_place_of = -1;
};

struct QueueStep {
  enum class Kind : uint8_t { kWork, kRecord, kWait };
  Kind kind = Kind::kWork;
  int32_t queue = 0;
  int32_t event = -1;  ///< of records and waits
  std::vector<PoolRead> reads = {};
  std::vector<PoolWrite> writes = {};
};

inline constexpr int32_t kMaxQueues = 8;

/// Steps in the order of issue. Work within a queue runs in that order. A record stands for all issued on its
/// queue before; what is issued on a queue behind a wait begins after the event. Every queue begins behind
/// the program's start, without an event; the program ends on queue 0, where nothing else orders it behind
/// other queues than events.
struct QueueProgram {
  int32_t num_queues = 1;  ///< at most kMaxQueues
  int32_t num_events = 0;
  std::vector<int64_t> pool_bytes = {};  ///< how large each pool is
  std::vector<QueueStep> steps = {};
  std::vector<PoolRead> results = {};  ///< what pools are to hold at the end
};

/// A way in which a program can go wrong.
struct Hazard {
  enum class Kind : uint8_t {
    kNoQueue,          ///< the step names a queue that is not there
    kNoEvent,          ///< the step names an event that is not there
    kRecordedTwice,    ///< an event is recorded once
    kWaitsForNothing,  ///< the event was not recorded before, in the order of issue
    kOutside,          ///< the bytes are not of their pool
    kReadsOther,       ///< issued one by one, the step would read what `other` wrote, not `meant`
    kReadsEarly,       ///< `other`, which writes them, may not be done
    kOverwritesRead,   ///< `other` may still be reading what the step writes over
    kOverwritesWrite,  ///< `other` may still be writing what the step writes over
    kOwnOperand,       ///< the step writes over its own operand or result, not in place
    kNotJoined,        ///< the program may end before the step
  };
  Kind kind = Kind::kNoQueue;
  int32_t step = 0;  ///< the number of steps: the end of the program
  int32_t other = kBeforeProgram;
  int32_t meant = kBeforeProgram;
  PoolRange bytes = {};
};

/// The first hazard in the order of issue, or nothing: then every run, however the queues fall beside each
/// other, reads and leaves the bytes that the steps would read and leave one by one, and these are the ones
/// meant.
/// Proof: of each two steps that touch a byte, one at least writing it, the first issued happens before the
/// other; so no run can tell itself from the order of issue, and that one is followed byte by byte.
/// Cost: near-linear in the accesses: vector clocks, and an ordered map of ranges for each pool.
std::optional<Hazard> find_hazard(const QueueProgram& program);

/// What a step or a pool is called.
struct HazardNames {
  std::function<std::string(int32_t step)> step;
  std::function<std::string(int32_t pool)> pool;
};

/// The hazard in words: "add (layers.1) overwrites bytes 0..64 of device, which copy_start (layers.0) may
/// still be reading".
std::string describe(const Hazard& hazard, const HazardNames& names);

}  // namespace plimsoll::memory
