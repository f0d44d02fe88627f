// The device interface: memory, queues, events, copies, kernels, and
// the capture of a launch sequence. The CPU implements it with threads, `discrete` with queues of its own;
// CUDA maps each call onto its own of that name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "ir/graph.h"
#include "runtime/queue_work.h"
#include "runtime/target.h"
#include "runtime/tensor_ref.h"

namespace plimsoll::runtime {

/// An allocation of a device in one of the memory spaces, freed with the object. Outlives the work queued on
/// it, and goes before its device.
class Memory {
 public:
  virtual ~Memory() = default;
  [[nodiscard]] virtual ir::MemorySpace space() const = 0;
  [[nodiscard]] virtual Bytes size() const = 0;
  /// Where it begins, as kernels and TensorRef name it; null for a disk. Following it is the device's alone.
  [[nodiscard]] virtual std::byte* address() const = 0;
  /// The same bytes as the host may read and write them; empty where it cannot.
  [[nodiscard]] virtual std::span<std::byte> host() const = 0;
  /// Of a disk: its bytes as they are now, past all queues; any thread. Errors: kIo, of this read alone: the
  /// device goes on.
  [[nodiscard]] virtual Status read(int64_t /*offset*/, std::span<std::byte> /*to*/) const {
    return Error{ErrorCode::kIo, "memory that is no disk is read as one"};
  }
};

/// A place in an allocation.
struct Location {
  const Memory* memory = nullptr;
  int64_t offset = 0;
};

struct EventId {
  int32_t index = -1;
};

/// A recorded sequence of launches, copies, fills, records and waits, replayed as one. Its end waits for that
/// of its replays. Goes before its device.
class CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;
};

/// Async: launch, copy, fill, record, wait and replay return before the work is done on a device with queues;
/// work of one queue runs in the order of issue, queues run beside each other; synchronize waits. On the CPU
/// every call has finished when it returns.
/// Errors: a call may fail by itself, and any later call may bring the error of work that was queued before:
/// kIo with the op's name and layer. After such a late error a device runs nothing more of what is queued,
/// and every call returns it, once all that had begun has ended: what the work was given may then be freed.
/// Threads: launches, replays and captures come from one; copies, fills, records, waits and synchronize from
/// any, on one queue too (a checkpoint is read beside programs that store), in the order in which they come.
class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual const Target& target() const = 0;

  /// Reserves memory and touches all of it; its content is undefined. Errors: kIo with the size and what to
  /// lower; kDoesNotFit where the device is smaller.
  virtual Result<std::unique_ptr<Memory>> allocate(ir::MemorySpace space, Bytes bytes) = 0;

  /// The most of its own memory that was taken at one time, as measured; 0 where that is the process's.
  [[nodiscard]] virtual Bytes peak_memory() const = 0;

  virtual Status launch(const KernelCall& call, ir::Queue queue) = 0;
  /// Between any two spaces; the ranges do not overlap. `op` is what errors name, with its layer; it lives as
  /// long as a call's arrays.
  virtual Status copy(Location destination, Location source, Bytes bytes, ir::Queue queue,
                      const ir::Op* op = nullptr) = 0;
  /// Repeats a 32-bit pattern, in the byte order of an f32; the last word may be cut.
  virtual Status fill(Location destination, Bytes bytes, uint32_t pattern, ir::Queue queue) = 0;

  /// Calls part(0) … part(parts - 1) on threads of the host, those that it computes with where they are its;
  /// returns when all are done. `part` uses nothing of the device. Not while capturing.
  virtual void run_parts(int64_t parts, const std::function<void(int64_t)>& part) {
    for (int64_t i = 0; i < parts; ++i) part(i);
  }

  /// Begins, from zero, or ends to count how long each of the threads that kernels run on computes, in
  /// seconds. Call both while nothing is queued.
  virtual void count_thread_seconds(bool /*on*/) {}
  /// Those since it was last asked, by thread; empty where none are counted. Valid until the next call.
  virtual std::span<const double> take_thread_seconds() { return {}; }

  /// Whether it can take down what its queues do.
  [[nodiscard]] virtual bool has_queue_log() const { return false; }
  /// Whether of replays only those are taken down that were captured while the log was on: a card writes
  /// times where a graph has events for them. A replay then waits for the last one of the same graph; on any
  /// other device, and of different graphs, replays go on as they would.
  [[nodiscard]] virtual bool logs_what_it_captures() const { return false; }
  /// Begins, from nothing, or ends to take it down. Call while nothing is queued.
  virtual void log_queues(bool /*on*/) {}
  /// What was taken down since then, queue by queue, each in its order. Call while nothing is queued.
  virtual std::vector<QueueWork> take_queue_log() { return {}; }

  /// An event that lasts as long as the device. Not while capturing.
  virtual EventId make_event() = 0;
  /// The event stands for all that is queued on `queue` so far, waits included, and no longer for what it
  /// stood for before.
  virtual Status record(EventId event, ir::Queue queue) = 0;
  /// What is queued on `queue` from here on begins after what the event stands for now; at once where it was
  /// never recorded.
  virtual Status wait(ir::Queue queue, EventId event) = 0;
  /// Until all that is queued on it so far has ended, waits included. Not while capturing.
  virtual Status synchronize(ir::Queue queue) = 0;
  virtual Status synchronize(EventId event) = 0;

  /// Until end_capture calls are recorded and not run. Events of a capture are its own: a wait for one that
  /// was not recorded within it waits for nothing.
  virtual Status begin_capture() = 0;
  virtual Result<std::unique_ptr<CapturedGraph>> end_capture() = 0;
  /// Queues the whole: its work on every queue begins after what was queued on kCompute before, and what is
  /// queued on kCompute afterwards begins behind what was captured on kCompute; a capture that uses other
  /// queues joins them with events. Allocates nothing.
  virtual Status replay(const CapturedGraph& graph) = 0;
};

}  // namespace plimsoll::runtime
