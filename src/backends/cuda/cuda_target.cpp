#include "backends/cuda/cuda_target.h"

#include "backends/cuda/kernel.h"
#include "backends/cuda/kernels/gemm/coded_product.h"

namespace plimsoll::cuda {
namespace {

Error no_kernel(std::string_view op) {
  return {ErrorCode::kInvalidArgument, "the op " + std::string(op) + " has no kernel on a CUDA card",
          "runtime.device", "set runtime.device=cpu and runtime.profile=auto"};
}

}  // namespace

CudaTarget::CudaTarget(int capability, Bytes memory, int host_threads)
    : capability_(capability),
      instruction_set_(capability == 0 ? "cuda" : "sm_" + std::to_string(capability)),
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

Status CudaTarget::accepts(const ir::OpTypes& types) const {
  const Kernel* kernel = find_kernel(types.op);
  if (kernel == nullptr) return no_kernel(types.op);
  const auto takes = [&](const std::vector<ir::TensorType>& list, uint32_t blocks) {
    for (size_t i = 0; i < list.size(); ++i)
      if (ir::is_block(list[i].dtype) && (i >= 32 || (blocks >> i & 1U) == 0)) return false;
    return true;
  };
  // Blocks are gathered as bytes.
  const uint32_t block_outputs = types.op == "unshard" ? 1 : 0;
  if (!takes(types.inputs, kernel->block_inputs) || !takes(types.outputs, block_outputs))
    return Error{
        ErrorCode::kInvalidArgument,
        "the op " + std::string(types.op) + " takes no quantized weights on a CUDA card", "quantization",
        "set quantization=null: with lora, weights in bf16 (training.state.weights=bf16) take 2 bytes a "
        "parameter"};
  return kernel->accepts == nullptr ? Status(Ok{}) : kernel->accepts(types, capability_);
}

std::string_view CudaTarget::computes_codes_in(const ir::OpTypes& types) const {
  const ScaledProduct product(types);
  if (!has_coded_units(product, capability_)) return "bf16";
  return numerics::is_nvfp4(product.a) ? "fp4" : "fp8";
}

}  // namespace plimsoll::cuda
