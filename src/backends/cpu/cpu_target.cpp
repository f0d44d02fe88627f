#include "backends/cpu/cpu_target.h"

#include "backends/cpu/kernel.h"
#include "backends/cpu/kernels/isa.h"
#include "backends/cpu/widened.h"
#include "base/check.h"

namespace plimsoll::cpu {

CpuTarget::CpuTarget(int num_threads) : num_threads_(num_threads) { PLIMSOLL_CHECK(num_threads >= 1); }

int64_t CpuTarget::workspace_bytes(const ir::OpTypes& types) const {
  const Kernel* kernel = find_kernel(types.op);
  return kernel == nullptr ? 0 : kernel_workspace_bytes(*kernel, types, num_threads_);
}

bool CpuTarget::accepts_strided(std::string_view op, size_t input) const {
  const Kernel* kernel = find_kernel(op);
  return kernel != nullptr && input < 32 && ((kernel->strided_inputs >> input) & 1U) != 0;
}

Status CpuTarget::accepts(const ir::OpTypes& types) const {
  if (find_kernel(types.op) != nullptr) return Ok{};
  return Error{ErrorCode::kInvalidArgument, "the CPU has no kernel for " + std::string(types.op), "",
               "this is a bug in Plimsoll: please report it with the run file"};
}

bool CpuTarget::reaches(ir::MemorySpace space) const { return space != ir::MemorySpace::kDisk; }

std::string_view CpuTarget::instruction_set() const { return isa_name(current_isa()); }

bool CpuTarget::has_matrix_units(ir::DType dtype) const {
  return dtype == ir::DType::kBf16 && current_isa() == Isa::kAmx;
}

}  // namespace plimsoll::cpu
