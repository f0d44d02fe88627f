// What cross_entropy and head_loss share: the loss of rows of logits and its sum.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/operands.h"

namespace plimsoll::cpu {

/// lse (where wanted) and loss of rows [0, rows); an ignored row's loss is 0. `d` not null: the gradient
/// (softmax - onehot) * scale of each row, zeros where ignored; it may be the logits' own memory.
struct LossRows {
  const float* logits = nullptr;
  int64_t stride = 0, classes = 0;
  const int32_t* targets = nullptr;
  float* lse = nullptr;
  float* loss = nullptr;
  float* d = nullptr;
  int64_t d_stride = 0;
  float scale = 0.0f;
};
void loss_rows(const LossRows& rows, int64_t begin, int64_t end);

/// The rows' losses, summed in granules, in order, from `acc` where that is not null.
float sum_losses(const float* losses, const Granules& granules, const float* acc);

}  // namespace plimsoll::cpu
