// The discrete device as planning sees it.
#pragma once

#include "backends/cpu/cpu_target.h"
#include "base/units.h"

namespace plimsoll::discrete {

/// The CPU's kernels, which reach the device's memory alone; the host does not reach that.
class DiscreteTarget final : public runtime::Target {
 public:
  /// `memory` is what the device has; 0: as much as the process is given.
  DiscreteTarget(int num_threads, Bytes memory) : cpu_(num_threads), memory_(memory) {}

  [[nodiscard]] std::string_view name() const override { return "discrete"; }
  [[nodiscard]] int64_t workspace_bytes(const ir::OpTypes& types) const override {
    return cpu_.workspace_bytes(types);
  }
  [[nodiscard]] bool accepts_strided(std::string_view op, size_t input) const override {
    return cpu_.accepts_strided(op, input);
  }
  [[nodiscard]] Status accepts(const ir::OpTypes& types) const override { return cpu_.accepts(types); }
  [[nodiscard]] bool reaches(ir::MemorySpace space) const override {
    return space == ir::MemorySpace::kDevice;
  }
  [[nodiscard]] const Target* host() const override { return &cpu_; }
  [[nodiscard]] bool shares_host_memory() const override { return false; }
  [[nodiscard]] int64_t memory_bytes() const override { return memory_.count; }
  [[nodiscard]] int num_threads() const override { return cpu_.num_threads(); }
  [[nodiscard]] std::string_view instruction_set() const override { return cpu_.instruction_set(); }
  [[nodiscard]] bool has_matrix_units(ir::DType dtype) const override { return cpu_.has_matrix_units(dtype); }

 private:
  cpu::CpuTarget cpu_;
  Bytes memory_;
};

}  // namespace plimsoll::discrete
