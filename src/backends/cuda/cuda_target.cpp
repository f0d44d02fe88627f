#include "backends/cuda/cuda_target.h"

#include <algorithm>

#include "backends/cuda/kernel.h"

namespace plimsoll::cuda {
namespace {

/// Ops without a kernel that a run's settings ask for, by the beginnings of their names: what asks for them,
/// and what a user can do instead.
struct Missing {
  std::string_view op, what, hint;
};
constexpr std::string_view kUpdateElsewhere =
    "set training.optimizer=adamw, lion or sgd; or let the host update: memory.offload={optimizer: host} "
    "memory.update_on_host=true";
constexpr Missing kMissing[] = {
    {"adamw_8bit", "training.optimizer adamw_8bit has no kernel on a CUDA card", kUpdateElsewhere},
    {"adafactor", "training.optimizer adafactor has no kernel on a CUDA card", kUpdateElsewhere},
    {"muon", "training.optimizer muon has no kernel on a CUDA card", kUpdateElsewhere},
    {"dora_", "lora.use_dora has no kernels on a CUDA card", "set lora.use_dora=false"},
    {"embedding_columns", "LoRA beside an embedding has no kernel on a CUDA card",
     "leave the embedding out of lora.target_modules"},
    {"token_rows", "lora.trainable_token_indices has no kernel on a CUDA card",
     "leave lora.trainable_token_indices out"},
};

Error no_kernel(std::string_view op) {
  const auto* const known =
      std::ranges::find_if(kMissing, [&](const Missing& m) { return op.starts_with(m.op); });
  if (known != std::end(kMissing))
    return {ErrorCode::kInvalidArgument, std::string(known->what), "runtime.device",
            std::string(known->hint)};
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
  for (const auto* list : {&types.inputs, &types.outputs})
    for (const ir::TensorType& type : *list)
      if (ir::is_block(type.dtype))
        return Error{
            ErrorCode::kInvalidArgument,
            "quantized weights (" + std::string(ir::name(type.dtype)) + ") have no products on a CUDA card",
            "quantization",
            "set quantization=null: with lora, weights in bf16 "
            "(training.state.weights=bf16) take 2 bytes a parameter"};
  return kernel->accepts == nullptr ? Status(Ok{}) : kernel->accepts(types, capability_);
}

}  // namespace plimsoll::cuda
