// silu, gelu in its forms (gelu.h's order), and what is fused with them.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/place.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/elementwise/activation.cuh"

namespace plimsoll::cuda {

// value(x + bias), where `bias` is given; with dy: dy * slope(x + bias).
extern "C" __global__ void activate(Activate args) {
  begin_grid();
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
  begin_grid();
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
  begin_grid();
  const i64 i = 8 * (blockIdx.x * (i64)blockDim.x + threadIdx.x);
  if (i >= args.n) return;
  if (args.cols % 8 == 0) {
    const bool vec = aligned16(args.dy) && aligned16(args.x) && aligned16(args.out);
    const Place at = place_of(i, args.cols);
    const i64 gate = at.row * 2 * args.cols + at.col;
    float g[8], u[8], d[8];
    load8(args.x, gate, g, vec), load8(args.x, gate + args.cols, u, vec), load8(args.dy, i, d, vec);
    for (int e = 0; e < 8; ++e) {
      const SwigluGrads grads = swiglu_grads(d[e], g[e], u[e]);
      g[e] = grads.gate, u[e] = grads.up;
    }
    store8(args.out, gate, g, vec), store8(args.out, gate + args.cols, u, vec);
    return;
  }
  for (i64 k = i; k < args.n && k < i + 8; ++k) {
    const Place at = place_of(k, args.cols);
    const i64 gate = at.row * 2 * args.cols + at.col;
    const SwigluGrads grads =
        swiglu_grads(load(args.dy, k), load(args.x, gate), load(args.x, gate + args.cols));
    store(args.out, gate, grads.gate);
    store(args.out, gate + args.cols, grads.up);
  }
}

}  // namespace plimsoll::cuda
