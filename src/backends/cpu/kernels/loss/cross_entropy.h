// Shared code of losses: the loss of rows of logits, and the sum over rows.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/operands.h"

namespace plimsoll::cpu {

/// lse (where wanted) and loss of rows [0, rows); an ignored row's loss is 0. `d` not null: the gradient
/// (softmax - onehot) * scale of each row, zeros where ignored, rounded to nearest even where `d_dtype` is
/// bf16 or f16; each of its rows may begin where that of the logits does.
struct LossRows {
  const float* logits = nullptr;
  int64_t stride = 0, classes = 0;
  const int32_t* targets = nullptr;
  float* lse = nullptr;
  float* loss = nullptr;
  std::byte* d = nullptr;
  ir::DType d_dtype = ir::DType::kF32;
  int64_t d_stride = 0;  ///< in elements of d_dtype
  float scale = 0.0f;
};
void loss_rows(const LossRows& rows, int64_t begin, int64_t end);

/// Workspace for the loss of each row of the first operand.
int64_t row_losses_bytes(const ir::OpTypes& types, int num_threads);
/// The rows' losses, summed in granules, in order, from `acc` where that is not null.
float sum_losses(const float* losses, const Granules& granules, const float* acc);

}  // namespace plimsoll::cpu
