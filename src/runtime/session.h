// Runs the programs of a planned session on a backend. All memory is taken when the session is made; running
// allocates nothing.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "passes/session_plan.h"
#include "runtime/backend.h"

namespace plimsoll::runtime {

struct SessionOptions {
  /// Debug: whatever the plan holds dead is filled with signalling NaNs - the whole arena at first, a storage
  /// when its lifetime ends, workspaces and paddings always - so that a read of it shows in the numbers.
  bool poison = false;
};

class Session {
 public:
  /// Reserves and touches the persistent block (zeroed) and the arena. `plan` is kept.
  static Result<std::unique_ptr<Session>> create(Backend& backend, passes::SessionPlan plan,
                                                 const SessionOptions& options = {});
  ~Session();

  /// Runs a program to its end.
  void run(int program);
  /// `gate` is called in every run just before the first instruction that writes to a parameter or to a state
  /// of the optimizer: until then another thread may read them. Set it between runs; null takes it away.
  void set_update_gate(std::function<void()> gate) { update_gate_ = std::move(gate); }
  [[nodiscard]] const passes::SessionPlan& plan() const { return plan_; }
  /// A state at its place; checked to exist.
  [[nodiscard]] TensorRef state(std::string_view name) const;
  /// Bytes of the arena that are resident now.
  [[nodiscard]] Bytes arena_resident_bytes() const { return arena_->resident_bytes(); }
  /// Wall seconds of each instruction of a program in its last run with timing on; empty otherwise.
  void enable_timing(bool on) { timing_ = on; }
  [[nodiscard]] std::vector<std::pair<const ir::Op*, double>> timed_ops(int program) const;

 private:
  struct Executable;
  Session(Backend& backend, passes::SessionPlan plan, const SessionOptions& options);
  void bind(size_t program);
  /// Index of the first instruction that writes to a parameter or to a state of the optimizer.
  [[nodiscard]] size_t first_update(const Executable& executable) const;
  void poison_before(const Executable& executable, size_t position);
  void poison_after(const Executable& executable, size_t position);

  Backend& backend_;
  passes::SessionPlan plan_;
  SessionOptions options_;
  bool timing_ = false;
  std::function<void()> update_gate_;
  std::unique_ptr<Memory> persistent_;
  std::unique_ptr<Memory> arena_;
  std::vector<std::unique_ptr<Executable>> executables_;
};

}  // namespace plimsoll::runtime
