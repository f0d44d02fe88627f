// Arguments of pointwise.cu.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

constexpr int kMostPointwiseInputs = 12, kMostPointwiseSteps = 256, kMostPointwiseConstants = 64,
              kMostPointwiseSlots = 96;

/// Threads of a block, whose slots are in shared memory: 48 KiB at most.
constexpr int kPointwiseThreads = 128;
static_assert(4 * kMostPointwiseSlots * kPointwiseThreads <= 48 << 10);

/// By the numbers of ops::Function.
enum class StepFunction : unsigned char {
  kCopy = 0,
  kNumber,
  kNeg,
  kAbs,
  kSign,
  kSqrt,
  kRsqrt,
  kExp,
  kLog,
  kTanh,
  kSigmoid,
  kSoftplus,
  kErf,
  kRelu,
  kAdd,
  kSub,
  kMul,
  kDiv,
  kPow,
  kMax,
  kMin,
  kLt,
  kLe,
  kGt,
  kGe,
  kEq,
  kNe,
  kWhere,
  kClamp
};

/// slot[to] = function(slot[a], slot[b], slot[c]).
struct PointwiseInstruction {
  StepFunction function = StepFunction::kCopy;
  unsigned char a = 0, b = 0, c = 0, to = 0;
};
struct PointwiseInput {
  Operand x;
  i64 stride[6] = {};  ///< along the axes of the result
};
/// Slots: inputs, the result, constants, what lies between.
struct PointwiseArgs {
  PointwiseInput in[kMostPointwiseInputs];
  Operand out;
  i64 extent[6] = {1, 1, 1, 1, 1, 1}, n = 0;
  int num_inputs = 0, num_steps = 0, num_constants = 0, padding = 0;
  float constants[kMostPointwiseConstants] = {};
  PointwiseInstruction steps[kMostPointwiseSteps];
};

inline constexpr DeviceKernel<PointwiseArgs> kPointwise{"elementwise/pointwise", "pointwise"};

}  // namespace plimsoll::cuda
