// Expressions: a thread an element, which goes through the steps with its slots. They are found by numbers
// that the compiler does not know, and lie in shared memory, those of a block's threads side by side.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/place.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/elementwise/pointwise_args.h"

namespace plimsoll::cuda {

__device__ __forceinline__ float pointwise_element(const Operand& x, i64 i) {
  return x.dtype == kI32 ? (float)((const int*)x.data)[i] : load(x, i);
}

__device__ __forceinline__ float pointwise_one(StepFunction f, float a) {
  switch (f) {
    case StepFunction::kNeg:
      return -a;
    case StepFunction::kAbs:
      return fabsf(a);
    case StepFunction::kSign:
      return (a > 0.0f ? 1.0f : 0.0f) - (a < 0.0f ? 1.0f : 0.0f);
    case StepFunction::kSqrt:
      return sqrtf(a);
    case StepFunction::kRsqrt:
      return 1.0f / sqrtf(a);
    case StepFunction::kExp:
      return expf(a);
    case StepFunction::kLog:
      return logf(a);
    case StepFunction::kTanh:
      return tanhf(a);
    case StepFunction::kSigmoid:
      return a < 0.0f ? expf(a) / (1.0f + expf(a)) : 1.0f / (1.0f + expf(-a));
    case StepFunction::kSoftplus:
      return (a > 0.0f || a != a ? a : 0.0f) + log1pf(expf(-fabsf(a)));
    case StepFunction::kErf:
      return erff(a);
    case StepFunction::kRelu:
      return a <= 0.0f ? 0.0f : a;
    default:
      return a;
  }
}

__device__ __forceinline__ float pointwise_two(StepFunction f, float a, float b) {
  switch (f) {
    case StepFunction::kAdd:
      return a + b;
    case StepFunction::kSub:
      return a - b;
    case StepFunction::kMul:
      return a * b;
    case StepFunction::kDiv:
      return a / b;
    case StepFunction::kPow:
      return powf(a, b);
    case StepFunction::kMax:
      return a > b || a != a ? a : b;
    case StepFunction::kMin:
      return a < b || a != a ? a : b;
    case StepFunction::kLt:
      return a < b ? 1.0f : 0.0f;
    case StepFunction::kLe:
      return a <= b ? 1.0f : 0.0f;
    case StepFunction::kGt:
      return a > b ? 1.0f : 0.0f;
    case StepFunction::kGe:
      return a >= b ? 1.0f : 0.0f;
    case StepFunction::kEq:
      return a == b ? 1.0f : 0.0f;
    default:
      return a != b ? 1.0f : 0.0f;
  }
}

extern "C" __global__ void pointwise(PointwiseArgs args) {
  begin_grid();
  extern __shared__ float slots[];
  const i64 i = blockIdx.x * (i64)kPointwiseThreads + threadIdx.x;
  if (i >= args.n) return;
  const auto slot = [&](int number) -> float& { return slots[number * kPointwiseThreads + threadIdx.x]; };
  i64 at[6], rest = i;
  for (int axis = 5; axis >= 0; --axis) {
    const Place place = place_of(rest, args.extent[axis]);
    at[axis] = place.col;
    rest = place.row;
  }
  for (int k = 0; k < args.num_inputs; ++k) {
    i64 offset = 0;
    for (int axis = 0; axis < 6; ++axis) offset += at[axis] * args.in[k].stride[axis];
    slot(k) = pointwise_element(args.in[k].x, offset);
  }
  for (int k = 0; k < args.num_constants; ++k) slot(args.num_inputs + 1 + k) = args.constants[k];
  for (int s = 0; s < args.num_steps; ++s) {
    const PointwiseInstruction step = args.steps[s];
    const float a = slot(step.a), b = slot(step.b), c = slot(step.c);
    slot(step.to) = step.function == StepFunction::kWhere   ? (a != 0.0f ? b : c)
                    : step.function == StepFunction::kClamp ? (a < b   ? b
                                                               : a > c ? c
                                                                       : a)
                    : step.function >= StepFunction::kAdd   ? pointwise_two(step.function, a, b)
                                                            : pointwise_one(step.function, a);
  }
  store(args.out, i, slot(args.num_inputs));
}

}  // namespace plimsoll::cuda
