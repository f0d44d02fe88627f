// The CPU as planning sees it.
#pragma once

#include "runtime/target.h"

namespace plimsoll::cpu {

/// Kernels and scratch for `num_threads` threads and for the instruction set that the process has chosen
/// (kernels/isa.h; once, before the first plan). Starts no thread and takes no memory.
class CpuTarget final : public runtime::Target {
 public:
  explicit CpuTarget(int num_threads);

  [[nodiscard]] std::string_view name() const override { return "cpu"; }
  [[nodiscard]] int64_t workspace_bytes(const ir::OpTypes& types) const override;
  [[nodiscard]] bool accepts_strided(std::string_view op, size_t input) const override;
  [[nodiscard]] Status accepts(const ir::OpTypes& types) const override;
  /// All but the disk.
  [[nodiscard]] bool reaches(ir::MemorySpace space) const override;
  [[nodiscard]] bool shares_host_memory() const override { return true; }
  [[nodiscard]] int64_t memory_bytes() const override { return 0; }
  [[nodiscard]] int num_threads() const override { return num_threads_; }
  [[nodiscard]] std::string_view instruction_set() const override;
  /// bf16 on AMX.
  [[nodiscard]] bool has_matrix_units(ir::DType dtype) const override;

 private:
  int num_threads_;
};

}  // namespace plimsoll::cpu
