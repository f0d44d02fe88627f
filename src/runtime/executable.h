// A program with addresses: its instructions bound to a device's memory, captured once and replayed for each
// run.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "passes/session_plan.h"
#include "runtime/bit_sum.h"
#include "runtime/device.h"
#include "runtime/transfer.h"

namespace plimsoll::runtime {

/// A signalling NaN of f32, repeated; as an i32 it is no token either.
inline constexpr uint32_t kPoison = 0x7fa5a5a5;

/// The allocations of a session, by memory space; null where a space has none.
struct SessionMemory {
  std::array<std::unique_ptr<Memory>, ir::kNumSpaces> persistent, arena;
};

/// An op's last run with the clock.
struct TimedOp {
  const ir::Op* op = nullptr;
  double start = 0, seconds = 0;  ///< by now_seconds; of wall time, without waits for events
  /// Of the threads that it computed on: the longest and the mean. 0: not counted, or by none of them.
  double busiest_seconds = 0, mean_seconds = 0;
  /// Behind it, where asked for: of the device's own memory the most so far, else what is resident of the
  /// process.
  int64_t measured_bytes = 0;
};

class Executable {
 public:
  /// Binds and captures. `poison`: as SessionOptions. Errors: of the device.
  static Result<std::unique_ptr<Executable>> create(Device& device, const passes::SessionPlan& session,
                                                    size_t program, const SessionMemory& memory, bool poison);

  /// Captures it again, with what the device's log wants (Device::logs_what_it_captures). Waits for all
  /// queues.
  Status capture();

  /// Queues what comes before the first op that writes to a parameter or to a state of the optimizer, or all
  /// of it; then the rest. Between the two another thread may still read those states.
  Status run_to_update();
  Status run_update();
  [[nodiscard]] bool updates() const { return update_ != nullptr; }

  /// Runs each op twice from the same state, where the plan has a second place for what it overwrites, and
  /// compares the bits of its results; `gate` as in Session::set_update_gate. Results are read through
  /// `transfer`, of kCompute.
  /// Errors: kDiverged with the first op whose runs differ, its layer and its result. Async: no.
  Status run_twice(Transfer& transfer, const std::function<void()>& gate);

  /// Runs op by op, behind all that was queued before and waiting for each; on a device that logs what it
  /// captures, and whose log is on, as training does, with the times of the log. In the order of issue;
  /// `gate` as in Session::set_update_gate.
  Status run_timed(bool memory, const std::function<void()>& gate);
  [[nodiscard]] const std::vector<TimedOp>& timed_ops() const { return timed_; }

 private:
  struct Instruction {
    passes::Issue issue;
    KernelCall call;
    Location to, from;  ///< of a copy
    Bytes bytes;
  };
  struct Fill {
    Location at;
    int64_t bytes = 0;
  };
  /// The first of an op's two runs: of a kernel that overwrites operands, on copies of them.
  struct DoubleRun {
    struct Kept {
      Location copy, original;
      Bytes bytes;
    };
    std::vector<TensorRef> operands;
    KernelCall call;
    std::vector<Kept> kept;
  };

  Executable(Device& device, const passes::SessionPlan& session, size_t program, const SessionMemory& memory);
  void bind();
  void bind_poison();
  [[nodiscard]] Location place_of_storage(int32_t storage) const;
  [[nodiscard]] Location place_of(ir::ValueId v) const;
  [[nodiscard]] Location place_of_state(std::string_view name) const;
  /// Of the elements that a state_assign gives their values.
  [[nodiscard]] Location place_assigned(const ir::Op& assign) const;
  [[nodiscard]] TensorRef ref(ir::ValueId v) const;
  /// Index of the first issue that writes to a state of the update; the end where none does.
  [[nodiscard]] size_t first_update() const;
  /// Of the first op at or behind that issue; the order's length where there is none.
  [[nodiscard]] size_t next_position(size_t from) const;
  /// Waits for every queue: what is issued one by one does not wait for the program before, as a replay does.
  Status join();
  enum class Pace : uint8_t { kQueued, kTimed, kTwice };
  Status issue(size_t begin, size_t end, Pace pace);
  Status issue_one(const Instruction& instruction);
  [[nodiscard]] DoubleRun double_run_of(const Instruction& instruction) const;
  Status issue_twice(const Instruction& instruction);
  /// Of a part of a result.
  struct ResultSum {
    size_t result = 0;
    BitSum::Value sum = {};
  };
  /// Of an op's results, or of what a copy wrote; of those of the rehearsal where one is given.
  Result<std::vector<ResultSum>> sums(const Instruction& instruction, const DoubleRun* double_run);
  Status add_sums(Location at, int64_t bytes, size_t result, std::vector<ResultSum>& sums);
  Status poison(const std::vector<Fill>& fills, ir::Queue queue);
  Status issue_joined(size_t begin, size_t end);
  Result<std::unique_ptr<CapturedGraph>> capture(size_t begin, size_t end);
  Status run_logged(const std::function<void()>& gate);

  Device& device_;
  const passes::SessionPlan& session_;
  const passes::Program& program_;
  const SessionMemory& memory_;
  std::vector<Location> state_places_;  ///< of the program's states, in their order
  std::vector<TensorRef> operands_;
  std::vector<Instruction> instructions_;       ///< by issue
  std::vector<EventId> events_;                 ///< by event of the order; then one a queue for joins
  std::vector<std::vector<Fill>> born_, dead_;  ///< by position in the order; empty: no poison
  std::unique_ptr<CapturedGraph> before_, update_;
  std::vector<TimedOp> timed_;
  bool measures_memory_ = false;  ///< of run_timed
  Transfer* transfer_ = nullptr;  ///< of run_twice
};

}  // namespace plimsoll::runtime
