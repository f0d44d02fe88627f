// Buffers of a model: tensors that training changes without a gradient. They are the running statistics of
// BatchNorm layers.
#pragma once

#include <cstdint>
#include <string>

#include "ir/graph.h"

namespace plimsoll::models {

/// A state of class kBuffer. Checkpoints hold it beside the parameters.
struct Buffer {
  std::string name;  ///< of the state
  ir::Shape shape;
  float init = 0;         ///< of each element, without a checkpoint
  std::string view;       ///< the tensor's name on disk
  bool is_count = false;  ///< the number of updates: i32[2] here, the words of an I64 scalar on disk
};

/// The state of the session that holds it.
inline ir::StateDecl state_of(const Buffer& buffer) {
  const ir::DType dtype = buffer.is_count ? ir::DType::kI32 : ir::DType::kF32;
  return {buffer.name, {dtype, buffer.shape}, ir::StateClass::kBuffer};
}

/// Names of a layer's buffers behind its own.
inline constexpr const char *kRunningMean = "running_mean", *kRunningVariance = "running_var",
                            *kUpdateCount = "num_batches_tracked";

/// Where a BatchNorm layer takes its statistics from in training.
enum class NormStatistics : uint8_t {
  kBatch,  ///< from the micro-batch; the running values follow
  kFrozen  ///< from the running values, which stay
};

/// A BatchNorm layer. Ioffe & Szegedy 2015, arXiv:1502.03167.
struct BatchNormLayer {
  std::string name;  ///< "resnet.embedder.embedder.normalization"
  int64_t channels = 0;
  double eps = 1e-5;
  double momentum = 0.1;  ///< the share of the batch's value in the next running value
  NormStatistics statistics = NormStatistics::kBatch;
  int64_t ranks = 1;  ///< whose micro-batches together are the batch
};

}  // namespace plimsoll::models
