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
/// signs, integers with 0.
class OpTimer {
 public:
  /// The op must exist and take those operands.
  OpTimer(cpu::CpuDevice& device, const OpSample& sample);

  /// The least of several runs, in seconds: at least three, then as many as `budget_seconds` has room for.
  double seconds(double budget_seconds = 0.4);
  [[nodiscard]] const ir::Cost& cost() const { return cost_; }

 private:
  std::span<std::byte> allocate(int64_t bytes);
  void add(const ir::TensorType& type, std::vector<runtime::TensorRef>& refs);

  cpu::CpuDevice& device_;
  ir::Op op_;
  ir::Cost cost_;
  std::vector<std::unique_ptr<runtime::Memory>> memory_;
  std::vector<runtime::TensorRef> inputs_, outputs_;
  std::span<std::byte> workspace_;
};

}  // namespace plimsoll::cli
