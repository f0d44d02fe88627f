// Runs the programs of a planned session on a device, and moves what the host and the programs say to each
// other. All memory is taken when the session is made; running allocates nothing.
//
//   host ── block ──► staging ─┐                          ┌─► staging ── read ──► host
//                              ▼ copy, kCompute           │ copy
//   device:  [ scalars | inputs | parameters, state, … ] ─┴─ program ─ program ─ …      one after the other
#pragma once

#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "passes/session_plan.h"
#include "runtime/communicator.h"
#include "runtime/device.h"
#include "runtime/executable.h"
#include "runtime/shared_states.h"
#include "runtime/transfer.h"

namespace plimsoll::runtime {

struct SessionOptions {
  /// Debug: whatever the plan holds dead is filled with signalling NaNs - all memory at first, a storage when
  /// its lifetime ends, workspaces and paddings always - so that a read of it shows in the numbers.
  bool poison = false;
  /// Of a run of several ranks, outlives the session; null: this is rank 0, and the others are not there.
  Communicator* communicator = nullptr;
};

/// States of one session that the host writes together.
struct BlockId {
  int32_t index = -1;
};

/// Threads: one, but for BackgroundReader.
class Session {
 public:
  /// Reserves and touches each space's block of states and arena, and the staging memory; optimizer states,
  /// caches and outputs begin as zeros, all else undefined. `plan` is kept. Errors: of the device.
  static Result<std::unique_ptr<Session>> create(Device& device, passes::SessionPlan plan,
                                                 const SessionOptions& options = {});
  /// Waits for what is queued.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Async: queues a program behind all that was queued before. Errors: of the device, of earlier work too.
  Status run(int program);
  /// The same op by op, each op twice: errors as Executable::run_twice. For programs that are planned so.
  Status run_twice(int program);
  /// Waits for all that was queued. Errors: what went wrong since the last look.
  Status synchronize();
  /// `gate` is called in every run of a program with an update, when all before the first instruction that
  /// writes to a parameter or to a state of the optimizer is queued and nothing behind: until it returns
  /// another thread may read them. Set it between runs; null takes it away.
  void set_update_gate(std::function<void()> gate) { update_gate_ = std::move(gate); }

  /// `observer` is told each program as it is queued; null takes it away.
  void set_run_observer(std::function<void(int program)> observer) { run_observer_ = std::move(observer); }

  [[nodiscard]] const passes::SessionPlan& plan() const { return plan_; }
  [[nodiscard]] Device& device() const { return device_; }
  /// Checked to exist. Of a state that ranks share, that of the whole tensor.
  [[nodiscard]] const ir::TensorType& type(std::string_view state) const;

  // What the host writes for each run: blocks of scalars and inputs of the device.

  /// States that are given together, of class kScalars or kInput. Make all blocks before the first run.
  BlockId make_block(const std::vector<std::string_view>& states);
  /// Host memory for the block's next content, all of it undefined: waits until the device has taken what was
  /// committed before the last commit. A block is committed before the next one is begun. Errors: of the
  /// device.
  Status begin(BlockId block);
  /// One of the block's states in there, by its place in the list that the block was made of.
  template <typename T>
  [[nodiscard]] std::span<T> of(BlockId block, size_t state) {
    const std::span<std::byte> bytes = staged(block, state);
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  /// Async: queues the block's way to the device, behind what runs and before what is queued next.
  Status commit(BlockId block);

  // Anything else, in bytes of a state from `offset` on. Errors: of the device. Of a state that ranks share
  // offsets are those of the whole tensor, and what other ranks have is neither written nor read.

  /// Async. `bytes` may be changed once it returns.
  Status write(std::string_view state, std::span<const std::byte> bytes, int64_t offset = 0);
  /// Waits for what was queued before. Not of a state that ranks share.
  Status read(std::string_view state, std::span<std::byte> bytes, int64_t offset = 0) const;
  /// A state's first element, as the host's.
  template <typename T>
  [[nodiscard]] Result<T> value(std::string_view state, int64_t index = 0) const {
    T result{};
    PLIMSOLL_TRY(read(state, {reinterpret_cast<std::byte*>(&result), sizeof(T)},
                      index * static_cast<int64_t>(sizeof(T))));
    return result;
  }
  /// Where the state lies, for a host that reaches the device's memory; empty for any other. What programs
  /// write shows there.
  [[nodiscard]] std::span<const std::byte> host_bytes(std::string_view state) const;
  /// Async. Repeats the 32-bit pattern over the whole state.
  Status fill(std::string_view state, uint32_t pattern);
  /// In pieces, without a copy where the host reaches the state. From any thread.
  Status read_pieces(std::string_view state, int64_t offset, int64_t bytes, const TakePiece& take) const;
  Status write_pieces(std::string_view state, int64_t offset, int64_t bytes, const FillPiece& fill);

  /// While rank 0 reads states that ranks share (BackgroundReader), the others serve it, and return when it
  /// ends. Nothing where there are no such states or no other ranks. Errors: of the communicator.
  Status serve_shared_states();
  Status end_shared_reads();

  /// Op by op with the clock, for benchmarks; then seconds of each op of a program's last run: wall time, or
  /// by the clock of a device that logs what it captures, which then runs as in training.
  /// With `memory` the ops' measured_bytes too, which cost some 20 us each. Errors: of the device.
  Status enable_timing(bool on, bool memory = false);
  /// Begins or ends the device's log of its queues (Device::log_queues), captures again what it has to see,
  /// and waits for all that is queued before. Errors: of the device.
  Status log_queues(bool on);
  [[nodiscard]] const std::vector<TimedOp>& timed_ops(int program) const;

 private:
  friend class BackgroundReader;
  struct Block;
  Session(Device& device, passes::SessionPlan plan);
  Status take_memory(const SessionOptions& options);
  Status fill_states(bool poison);
  /// What this rank has of the state.
  [[nodiscard]] const passes::SessionState& held(std::string_view state) const;
  [[nodiscard]] Location place(std::string_view state) const;
  [[nodiscard]] OwnRange own(std::string_view state, int64_t offset, int64_t bytes) const;
  [[nodiscard]] std::span<std::byte> staged(BlockId block, size_t state);
  /// What is moved through staging memory is moved by one thread at a time.
  [[nodiscard]] std::unique_lock<std::mutex> lock_transfer(const Location& at) const;

  Device& device_;
  passes::SessionPlan plan_;
  bool timing_ = false, measures_memory_ = false;
  std::function<void()> update_gate_;
  std::function<void(int)> run_observer_;
  SessionMemory memory_;
  std::unique_ptr<Memory> staging_;
  int64_t staged_bytes_ = 0;  ///< of one of the two copies of scalars and inputs
  mutable std::mutex transfer_mutex_;
  mutable std::unique_ptr<Transfer> transfer_, background_;
  std::vector<Block> blocks_;
  std::array<EventId, 2> taken_{};  ///< by copy of the staged states: that the device has read it
  size_t slot_ = 0;
  BlockId begun_;
  std::vector<std::unique_ptr<Executable>> executables_;
  int rank_ = 0;
  std::unique_ptr<SharedStates> shared_;  ///< where ranks share states
};

/// Reads states on a thread of its own while programs run that do not write them. One at a time for a
/// session.
class BackgroundReader {
 public:
  explicit BackgroundReader(Session& session);
  /// On the session's thread: what is read from here on is as programs queued so far leave it.
  Status mark();
  /// On any thread; of a state that ranks share on rank 0, on the session's thread, while the others serve.
  /// Errors: of the device, of the communicator, or the first that `take` returns.
  Status read(std::string_view state, int64_t offset, int64_t bytes, const TakePiece& take);

 private:
  Session& session_;
  EventId marked_;
};

}  // namespace plimsoll::runtime
