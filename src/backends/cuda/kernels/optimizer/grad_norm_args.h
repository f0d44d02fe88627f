// Arguments of grad_norm.cu. Tensors lie side by side in a launch.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

/// Elements of a block.
constexpr int kSquaresChunk = 16384;
constexpr int kSquaresTensors = 64, kNormInputs = 128;

struct SquaresTensor {
  Operand x;
  i64 n = 0, first_chunk = 0;
};
struct SquaresBatch {
  SquaresTensor tensors[kSquaresTensors];
  i64 chunks = 0;  // of all
  int count = 0, rounded = 0;
  double* sums = nullptr;  // of each chunk
  float* out = nullptr;    // of each tensor
};
static_assert(sizeof(SquaresBatch) <= kMostArgumentBytes);

/// `total` goes on from batch to batch where `begins` is not set. The last batch gives the norm.
struct NormBatch {
  const float* squares[kNormInputs] = {};
  i64 n[kNormInputs] = {};
  int count = 0, begins = 0;
  double* total = nullptr;
  float* norm = nullptr;
};
static_assert(sizeof(NormBatch) <= kMostArgumentBytes);

struct ClipScale {
  const float* norm = nullptr;
  float max_norm = 0;
  float* out = nullptr;
};

inline constexpr DeviceKernel<SquaresBatch> kSumSquaresChunks{"optimizer/grad_norm", "sum_squares_chunks"};
inline constexpr DeviceKernel<SquaresBatch> kSumSquaresTensors{"optimizer/grad_norm", "sum_squares_tensors"};
inline constexpr DeviceKernel<NormBatch> kGlobalNorm{"optimizer/grad_norm", "global_norm"};
inline constexpr DeviceKernel<ClipScale> kClipScale{"optimizer/grad_norm", "clip_scale"};

}  // namespace plimsoll::cuda
