// Quantises what SwiGLU and its gradient compute, eight elements at a time, so that they lie nowhere.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/kernels/elementwise/activation.cuh"
#include "backends/cuda/kernels/gemm/operand_codes.cuh"
#include "backends/cuda/kernels/gemm/swiglu_codes_args.h"

namespace plimsoll::cuda {
namespace {

struct OfSwiglu {
  const SwigluCodes& a;
  const OperandSource& s;

  __device__ __forceinline__ void operator()(i64 row, i64 col, int n, float (&v)[8]) const {
    const i64 gate = row * 2 * a.cols + col;
    const bool vec = a.cols % 8 == 0 && aligned16(a.x);
    float up[8];
    load_part(a.x, gate, n, v, vec), load_part(a.x, gate + a.cols, n, up, vec);
#pragma unroll
    for (int e = 0; e < 8; ++e) v[e] = as_read(act_value(v[e], kSilu) * up[e], a.dtype, s);
  }
};

// Of the gate, and behind its columns of up.
struct OfSwigluGrad {
  const SwigluCodes& a;
  const OperandSource& s;

  __device__ __forceinline__ float one(i64 row, i64 col) const {
    const bool is_up = col >= a.cols;
    const i64 at = is_up ? col - a.cols : col, gate = row * 2 * a.cols + at;
    const SwigluGrads grads =
        swiglu_grads(load(a.dy, row * a.cols + at), load(a.x, gate), load(a.x, gate + a.cols));
    return as_read(is_up ? grads.up : grads.gate, a.dtype, s);
  }
  __device__ __forceinline__ void operator()(i64 row, i64 col, int n, float (&v)[8]) const {
    if (a.cols % 8 != 0) {  // eight columns may be of both
#pragma unroll
      for (int e = 0; e < 8; ++e) v[e] = e < n ? one(row, col + e) : 0.0f;
      return;
    }
    const bool is_up = col >= a.cols;
    const i64 at = is_up ? col - a.cols : col, gate = row * 2 * a.cols + at;
    const bool vec = aligned16(a.x) && aligned16(a.dy);
    float up[8], dy[8];
    load_part(a.x, gate, n, v, vec), load_part(a.x, gate + a.cols, n, up, vec);
    load_part(a.dy, row * a.cols + at, n, dy, vec);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const SwigluGrads grads = swiglu_grads(dy[e], v[e], up[e]);
      v[e] = as_read(is_up ? grads.up : grads.gate, a.dtype, s);
    }
  }
};

template <typename Load>
__device__ __forceinline__ void write_plain(const SwigluCodes& a, Load load) {
  __shared__ u32 shared[kRunWarps];
  const DeviceTensorScale tensor = tensor_of(a.plain);
  u32 most = 0;
  visit_runs(a.plain.source, load, [&](i64 row, i64 col, int n, const float(&v)[8]) {
    quantize_run(a.plain, tensor, row, col, n, v);
    most = largest_bits(v);
  });
  if (a.largest == nullptr) return;
  most = largest_of_block(most, shared);
  if (threadIdx.x == 0) a.largest[blockIdx.x] = most;
}
template <typename Load>
__device__ __forceinline__ void write_turned(const SwigluCodes& a, Load load) {
  visit_turned(a.turned.source, load, [&](i64 row, i64 col, int n, const float(&v)[8]) {
    quantize_run(a.turned, DeviceTensorScale(), row, col, n, v);
  });
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256, 1) swiglu_codes(const __grid_constant__ SwigluCodes a) {
  begin_grid();
  write_plain(a, OfSwiglu{a, a.plain.source});
}
extern "C" __global__ void __launch_bounds__(256, 1)
    swiglu_codes_turned(const __grid_constant__ SwigluCodes a) {
  begin_grid();
  write_turned(a, OfSwiglu{a, a.turned.source});
}
extern "C" __global__ void __launch_bounds__(256, 1)
    swiglu_codes_both(const __grid_constant__ SwigluCodes a) {
  begin_grid();
  quantize_both_of(a.plain, a.turned, OfSwiglu{a, a.plain.source});
}
extern "C" __global__ void __launch_bounds__(256, 1)
    swiglu_grad_codes(const __grid_constant__ SwigluCodes a) {
  begin_grid();
  write_plain(a, OfSwigluGrad{a, a.plain.source});
}
extern "C" __global__ void __launch_bounds__(256, 1)
    swiglu_grad_codes_turned(const __grid_constant__ SwigluCodes a) {
  begin_grid();
  write_turned(a, OfSwigluGrad{a, a.turned.source});
}
extern "C" __global__ void __launch_bounds__(256, 1)
    swiglu_grad_codes_both(const __grid_constant__ SwigluCodes a) {
  begin_grid();
  quantize_both_of(a.plain, a.turned, OfSwigluGrad{a, a.plain.source});
}

}  // namespace plimsoll::cuda
