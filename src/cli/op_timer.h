// One op of the graph, run through the CPU device as a program runs it, and timed.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/cpu/cpu_device.h"
#include "ir/op_def.h"

namespace plimsoll::cli {

struct OpSample {
  std::string op;
  std::vector<ir::TensorType> inputs;
  ir::Attrs attrs;
};

/// Memory of a sample: operands, results, scratch, one after the other. Floats are filled with values of both
/// signs, integers with numbers below 1000.
class OpTimer {
 public:
  /// The op must exist and take those operands.
  /// With `spread_bytes`, so many operands of the same types that they take about that, used in turn: what a
  /// step finds in its caches is rarely the op's own.
  OpTimer(cpu::CpuDevice& device, const OpSample& sample, int64_t spread_bytes = 0);

  /// The least of several runs, in seconds: at least three, then as many as `budget_seconds` has room for.
  double seconds(double budget_seconds = 0.4);
  /// The lower quartile of several, of those that nothing else interrupted where there are three: what else
  /// runs on the machine only ever adds.
  double typical_seconds(double budget_seconds);
  [[nodiscard]] ir::OpTypes types() const;
  [[nodiscard]] const ir::Cost& cost() const { return cost_; }

 private:
  struct Operands {
    std::vector<runtime::TensorRef> inputs, outputs;
  };
  Operands make_operands();
  /// Seconds of one run on the next operands.
  double run();
  std::span<std::byte> take(int64_t bytes);

  cpu::CpuDevice& device_;
  ir::Op op_;
  ir::Cost cost_;
  std::unique_ptr<runtime::Memory> memory_;
  int64_t taken_ = 0;
  std::vector<ir::TensorType> input_types_, output_types_;
  std::vector<Operands> operands_;
  size_t next_ = 0;
  std::span<std::byte> workspace_;
};

}  // namespace plimsoll::cli
