// silu and gelu in its forms (gelu.h's order), their slopes, and the gradients of SwiGLU.
#pragma once

#include "backends/cuda/kernels/elementwise/activation_args.h"

namespace plimsoll::cuda {

__device__ __forceinline__ float act_sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
__device__ __forceinline__ float act_value(float x, int form) {
  if (form == kSilu) return x * act_sigmoid(x);
  if (form == 0) return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
  if (form == 1) return 0.5f * x * (1.0f + tanhf(0.79788456080286536f * (x + 0.044715f * x * x * x)));
  return x * act_sigmoid(1.702f * x);
}
__device__ __forceinline__ float act_slope(float x, int form) {
  if (form == kSilu) {
    const float s = act_sigmoid(x);
    return s * (1.0f + x * (1.0f - s));
  }
  if (form == 0)
    return 0.5f * (1.0f + erff(x * 0.70710678118654752f)) + x * 0.39894228040143268f * expf(-0.5f * x * x);
  if (form == 1) {
    const float t = tanhf(0.79788456080286536f * (x + 0.044715f * x * x * x));
    return 0.5f * (1.0f + t) +
           0.5f * x * (1.0f - t * t) * 0.79788456080286536f * (1.0f + 3.0f * 0.044715f * x * x);
  }
  const float s = act_sigmoid(1.702f * x);
  return s + x * 1.702f * s * (1.0f - s);
}

// Of silu(gate) * up.
struct SwigluGrads {
  float gate, up;
};
__device__ __forceinline__ SwigluGrads swiglu_grads(float dy, float gate, float up) {
  const float s = act_sigmoid(gate);
  return {dy * up * (s * (1.0f + gate * (1.0f - s))), dy * (gate * s)};
}

}  // namespace plimsoll::cuda
