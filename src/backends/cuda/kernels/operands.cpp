#include "backends/cuda/kernels/operands.h"

namespace plimsoll::cuda {

Status accepts_head(int64_t head_dim, int64_t most, std::string_view what) {
  if (head_dim <= most) return Ok{};
  return Error{ErrorCode::kInvalidArgument,
               std::string(what) + " on this CUDA card has no kernel for heads of " +
                   std::to_string(head_dim) + " elements, only for up to " + std::to_string(most),
               "runtime.device", "set runtime.device=cpu and runtime.profile=auto"};
}

}  // namespace plimsoll::cuda
