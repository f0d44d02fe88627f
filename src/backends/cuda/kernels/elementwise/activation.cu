// silu, gelu in its forms (gelu.h's order), and what is fused with them.
#include "backends/cuda/device/place.cuh"
#include "backends/cuda/device/vector.cuh"
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

// value(x + bias), where `bias` is given; with dy: dy * slope(x + bias).
extern "C" __global__ void activate(Activate args) {
  const i64 i = 8 * (blockIdx.x * (i64)blockDim.x + threadIdx.x);
  if (i >= args.n) return;
  const bool vec = aligned16(args.dy) && aligned16(args.x) && aligned16(args.bias) && aligned16(args.out);
  if (i + 8 <= args.n && (args.cols % 8 == 0 || !given(args.bias))) {
    float a[8], b[8] = {}, d[8];
    load8(args.x, i, a, vec);
    if (given(args.bias)) load8(args.bias, place_of(i, args.cols).col, b, vec);
    if (given(args.dy)) load8(args.dy, i, d, vec);
    for (int e = 0; e < 8; ++e) {
      const float v = given(args.bias) ? a[e] + b[e] : a[e];
      a[e] = given(args.dy) ? d[e] * act_slope(v, args.form) : act_value(v, args.form);
    }
    store8(args.out, i, a, vec);
    return;
  }
  for (i64 k = i; k < args.n && k < i + 8; ++k) {
    const float v =
        given(args.bias) ? load(args.x, k) + load(args.bias, place_of(k, args.cols).col) : load(args.x, k);
    store(args.out, k, given(args.dy) ? load(args.dy, k) * act_slope(v, args.form) : act_value(v, args.form));
  }
}

// x: rows of 2 * cols, gate then up. n elements of results of width cols.
extern "C" __global__ void swiglu(Swiglu args) {
  const i64 i = 8 * (blockIdx.x * (i64)blockDim.x + threadIdx.x);
  if (i >= args.n) return;
  if (args.cols % 8 == 0) {
    const bool vec = aligned16(args.x) && aligned16(args.out);
    const Place at = place_of(i, args.cols);
    const i64 gate = at.row * 2 * args.cols + at.col;
    float g[8], u[8];
    load8(args.x, gate, g, vec), load8(args.x, gate + args.cols, u, vec);
    for (int e = 0; e < 8; ++e) g[e] = act_value(g[e], kSilu) * u[e];
    store8(args.out, i, g, vec);
    return;
  }
  for (i64 k = i; k < args.n && k < i + 8; ++k) {
    const Place at = place_of(k, args.cols);
    const i64 gate = at.row * 2 * args.cols + at.col;
    store(args.out, k, act_value(load(args.x, gate), kSilu) * load(args.x, gate + args.cols));
  }
}
// `out` may lie where x does: a pair is read whole before it is written.
extern "C" __global__ void swiglu_grad(Swiglu args) {
  const i64 i = 8 * (blockIdx.x * (i64)blockDim.x + threadIdx.x);
  if (i >= args.n) return;
  if (args.cols % 8 == 0) {
    const bool vec = aligned16(args.dy) && aligned16(args.x) && aligned16(args.out);
    const Place at = place_of(i, args.cols);
    const i64 gate = at.row * 2 * args.cols + at.col;
    float g[8], u[8], d[8];
    load8(args.x, gate, g, vec), load8(args.x, gate + args.cols, u, vec), load8(args.dy, i, d, vec);
    for (int e = 0; e < 8; ++e) {
      const float s = act_sigmoid(g[e]);
      const float d_gate = d[e] * u[e] * (s * (1.0f + g[e] * (1.0f - s)));
      u[e] = d[e] * (g[e] * s);
      g[e] = d_gate;
    }
    store8(args.out, gate, g, vec), store8(args.out, gate + args.cols, u, vec);
    return;
  }
  for (i64 k = i; k < args.n && k < i + 8; ++k) {
    const Place at = place_of(k, args.cols);
    const i64 gate = at.row * 2 * args.cols + at.col;
    const float g = load(args.x, gate), u = load(args.x, gate + args.cols), d = load(args.dy, k);
    store(args.out, gate, d * u * act_slope(g, kSilu));
    store(args.out, gate + args.cols, d * act_value(g, kSilu));
  }
}

}  // namespace plimsoll::cuda
