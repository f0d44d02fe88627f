// One op of the graph, run through a device as a program runs it, and timed: by the host's clock, or by that
// of a device that logs what it captures, on which the runs are a captured program.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/op_def.h"
#include "runtime/device.h"

namespace plimsoll::measuring {

struct OpSample {
  std::string op;
  std::vector<ir::TensorType> inputs;
  ir::Attrs attrs;
};

/// Memory that one sample after the other has: touching it anew would take longer than most measure.
class OperandMemory {
 public:
  explicit OperandMemory(runtime::Device& device) : device_(device) {}
  /// So many bytes, as kernels name them; what they were given to before is over. Errors: of the device.
  Result<std::span<std::byte>> of(int64_t bytes);
  [[nodiscard]] runtime::Location place(const std::byte* at) const {
    return {memory_.get(), at - memory_->address()};
  }

 private:
  runtime::Device& device_;
  std::unique_ptr<runtime::Memory> memory_;
};

/// Memory of a sample: operands, results, scratch, one after the other. Floats are filled with values of both
/// signs, integers with numbers below 1000.
/// Errors: the device's first one stays in status(), and nothing more is run or measured.
class OpTimer {
 public:
  /// The op must exist and take those operands.
  /// With `spread_bytes`, so many operands of the same types that they take about that, used in turn: what a
  /// step finds in its caches is rarely the op's own. In memory of its own, or in what is given.
  OpTimer(runtime::Device& device, const OpSample& sample, int64_t spread_bytes = 0,
          OperandMemory* memory = nullptr);

  [[nodiscard]] const Status& status() const { return status_; }
  /// The least of several runs, in seconds: at least three, then as many as `budget_seconds` has room for.
  double seconds(double budget_seconds = 0.4);
  /// Seconds of several, without those that another process interrupted; only the least where these are fewer
  /// than three. Of a device that logs what it captures those of runs right behind each other.
  std::vector<double> runs_alone(double budget_seconds);
  /// Their median: what a step's ops take, which come whenever they come. The least is what a machine gives
  /// while its neighbours rest (a quarter less than the median where virtual machines share cores).
  double typical_seconds(double budget_seconds);
  /// Queues one run on the next operands, and does not wait for it.
  void launch();
  [[nodiscard]] ir::OpTypes types() const;
  [[nodiscard]] const ir::OpDef& def() const { return *op_.def; }
  [[nodiscard]] const ir::Cost& cost() const { return cost_; }

 private:
  struct Operands {
    std::vector<runtime::TensorRef> inputs, outputs;
  };
  Operands make_operands();
  /// With values as every sample has them.
  Status fill(const runtime::TensorRef& operand);
  /// Seconds of one run on the next operands.
  double run();
  /// Of so many runs in one captured program.
  std::vector<double> runs_captured(int64_t times);
  Result<std::vector<double>> log_of_captured(int64_t times);
  /// Whether all is well; keeps the first error.
  bool check(Status status);
  std::span<std::byte> take(int64_t bytes);

  runtime::Device& device_;
  ir::Op op_;
  ir::Cost cost_;
  OperandMemory own_memory_;
  OperandMemory* owner_;
  std::unique_ptr<runtime::Memory> staging_;  ///< for a device whose memory the host does not reach
  std::span<std::byte> memory_;
  int64_t taken_ = 0;
  std::vector<ir::TensorType> input_types_, output_types_;
  std::vector<Operands> operands_;
  size_t next_ = 0;
  std::span<std::byte> workspace_;
  Status status_ = Ok{};
};

}  // namespace plimsoll::measuring
