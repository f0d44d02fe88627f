// An NVIDIA card as planning sees it.
#pragma once

#include <string>

#include "backends/cpu/cpu_target.h"
#include "base/units.h"
#include "runtime/target.h"

namespace plimsoll::cuda {

/// Pure: it is made of what is known of the card, and asks none.
class CudaTarget final : public runtime::Target {
 public:
  /// `capability`: 90 for an H100; 0 where it is not known. `memory`: what a plan may take; 0: what it needs.
  /// `host_threads`: with which the host computes beside the card.
  CudaTarget(int capability, Bytes memory, int host_threads);

  [[nodiscard]] std::string_view name() const override { return "cuda"; }
  [[nodiscard]] int64_t workspace_bytes(const ir::OpTypes& types) const override;
  [[nodiscard]] bool accepts_strided(std::string_view op, size_t input) const override;
  [[nodiscard]] Status accepts(const ir::OpTypes& types) const override;
  [[nodiscard]] bool reaches(ir::MemorySpace space) const override {
    return space == ir::MemorySpace::kDevice;
  }
  [[nodiscard]] const Target* host() const override { return &host_; }
  [[nodiscard]] bool shares_host_memory() const override { return false; }
  [[nodiscard]] bool is_in_process() const override { return false; }
  /// Driver, compiler's image and cuBLASLt: measured 405 to 467 MB with driver 580 and CUDA 13.0.
  [[nodiscard]] int64_t library_bytes() const override { return int64_t{480} << 20; }
  [[nodiscard]] int64_t memory_bytes() const override { return memory_.count; }
  /// Of the host: no bit depends on them.
  [[nodiscard]] int num_threads() const override { return 1; }
  [[nodiscard]] std::string_view instruction_set() const override { return instruction_set_; }
  /// Turing has them for f16 alone.
  [[nodiscard]] bool has_matrix_units(ir::DType dtype) const override {
    return is_turing() ? dtype == ir::DType::kF16 : ir::is_half_precision(dtype);
  }
  [[nodiscard]] bool rounds_apart() const override { return true; }
  [[nodiscard]] bool sums_beside_products() const override { return true; }
  [[nodiscard]] std::string_view computes_codes_in(const ir::OpTypes& types) const override;

 private:
  [[nodiscard]] bool is_turing() const { return capability_ > 0 && capability_ < 80; }

  int capability_;
  std::string instruction_set_;  ///< "sm_90"
  Bytes memory_;
  cpu::CpuTarget host_;
};

}  // namespace plimsoll::cuda
