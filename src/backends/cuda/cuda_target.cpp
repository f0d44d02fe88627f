#include "backends/cuda/cuda_target.h"

#include "backends/cuda/kernel.h"

namespace plimsoll::cuda {

CudaTarget::CudaTarget(int capability, Bytes memory, int host_threads)
    : instruction_set_(capability == 0 ? "cuda" : "sm_" + std::to_string(capability)),
      memory_(memory),
      host_(host_threads) {}

int64_t CudaTarget::workspace_bytes(const ir::OpTypes& types) const {
  const Kernel* kernel = find_kernel(types.op);
  return kernel == nullptr || kernel->workspace_bytes == nullptr ? 0 : kernel->workspace_bytes(types);
}

bool CudaTarget::accepts_strided(std::string_view op, size_t input) const {
  const Kernel* kernel = find_kernel(op);
  return kernel != nullptr && input < 32 && ((kernel->strided_inputs >> input) & 1U) != 0;
}

bool CudaTarget::supports(std::string_view op) const { return find_kernel(op) != nullptr; }

}  // namespace plimsoll::cuda
