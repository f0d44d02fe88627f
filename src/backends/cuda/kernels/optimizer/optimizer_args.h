// Arguments of optimizer.cu. Tensors lie side by side in a launch.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

enum class Rule : int { kAdamw = 0, kSgd = 1, kSgdMomentum = 2, kLion = 3, kAdamL2 = 4 };
/// Columns of the table that a rule reads at most.
constexpr int kUpdateFields = 9;
/// Elements of a block.
constexpr int kUpdateBlock = 2048;
constexpr int kTensorsOfUpdate = 32;

struct UpdateTensor {
  Operand param, grad, states[2], copy;
  i64 n = 0, first_block = 0, first = 0;  // first: the tensor's, of which this is a window
  u32 key = 0;
  int group = 0;
};
struct UpdateBatch {
  UpdateTensor tensors[kTensorsOfUpdate];
  const float *clip = nullptr, *groups = nullptr;
  const u32* random = nullptr;  // null: to nearest
  i64 columns = 0;              // of groups
  int count = 0;
  Rule rule = Rule::kAdamw;
  int rounded = 0;
  int is_shared = 0;  // by ranks: random has words of this one
};
static_assert(sizeof(UpdateBatch) <= kMostArgumentBytes);

inline constexpr DeviceKernel<UpdateBatch> kUpdateTensors{"optimizer/optimizer", "update_tensors"};

}  // namespace plimsoll::cuda
