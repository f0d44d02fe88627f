// Quantises operands of products in FP8 and FP4: the largest magnitudes of blocks, or of the tensor in a pass
// of its own, their scales, and the codes.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/kernels/gemm/operand_codes.cuh"

namespace plimsoll::cuda {

extern "C" __global__ void __launch_bounds__(256) operand_amax(const __grid_constant__ OperandAmax a) {
  begin_grid();
  __shared__ u32 shared[kRunWarps];
  u32 most = 0;
  visit_runs(a.source, OfX{a.source}, [&](i64, i64, int, const float(&v)[8]) { most = largest_bits(v); });
  most = largest_of_block(most, shared);
  if (threadIdx.x == 0) a.largest[blockIdx.x] = most;
}
extern "C" __global__ void __launch_bounds__(256) operand_amax_turned(const __grid_constant__ OperandAmax a) {
  begin_grid();
  __shared__ u32 shared[kRunWarps];
  u32 most = 0;
  visit_turned(a.source, OfX{a.source}, [&](i64, i64, int, const float(&v)[8]) {
    const u32 bits = largest_bits(v);
    if (bits > most) most = bits;
  });
  most = largest_of_block(most, shared);
  if (threadIdx.x == 0) a.largest[blockIdx.x] = most;
}

// numerics::tensor_scale and given_scale; one block.
extern "C" __global__ void __launch_bounds__(256) operand_scale(const __grid_constant__ OperandScale a) {
  begin_grid();
  __shared__ u32 shared[8];
  u32 most = 0;
  for (i64 i = threadIdx.x; i < a.n; i += blockDim.x)
    if (a.largest[i] > most) most = a.largest[i];
  most = largest_of_block(most, shared);
  if (threadIdx.x != 0) return;
  DeviceTensorScale tensor;
  tensor.amax = __uint_as_float(most);
  if (a.given != nullptr)
    tensor.scale = a.given[0] == 0.0f ? 1.0f : a.given[0];
  else if (most != 0 && most < kInfinityBits)
    tensor.scale = fminf(__fdiv_rn(a.largest_code, tensor.amax), kLargestF32);
  tensor.decode = __fdiv_rn(1.0f, tensor.scale);
  *a.tensor = tensor;
  if (a.amax != nullptr) *a.amax = tensor.amax;
  if (a.decode != nullptr) *a.decode = tensor.decode;
}

extern "C" __global__ void __launch_bounds__(256) quantize_runs(const __grid_constant__ QuantizeOperand a) {
  begin_grid();
  const DeviceTensorScale tensor = tensor_of(a);
  visit_runs(a.source, OfX{a.source},
             [&](i64 row, i64 col, int n, const float(&v)[8]) { quantize_run(a, tensor, row, col, n, v); });
}
extern "C" __global__ void __launch_bounds__(256) quantize_turned(const __grid_constant__ QuantizeOperand a) {
  begin_grid();
  const DeviceTensorScale tensor = tensor_of(a);
  visit_turned(a.source, OfX{a.source},
               [&](i64 row, i64 col, int n, const float(&v)[8]) { quantize_run(a, tensor, row, col, n, v); });
}

extern "C" __global__ void __launch_bounds__(256, 1) quantize_both(const __grid_constant__ QuantizeBoth a) {
  begin_grid();
  quantize_both_of(a.plain, a.turned, OfX{a.plain.source});
}

// A tile of 128 x 128 a block: sixteen threads a row, eight steps of sixteen rows, which stay in registers.
extern "C" __global__ void __launch_bounds__(256)
    quantize_tiles_128(const __grid_constant__ QuantizeOperand a) {
  begin_grid();
  __shared__ u32 shared[8];
  const Place tile = place_of(blockIdx.x, (a.source.cols + 127) / 128);
  const i64 col = tile.col * 128 + 8 * (threadIdx.x & 15), first = tile.row * 128 + (threadIdx.x >> 4);
  float v[8][8];
  u32 most = 0;
#pragma unroll
  for (int step = 0; step < 8; ++step) {
    const i64 row = first + 16 * step;
    const int n = row < a.source.rows ? part_of(col, a.source.cols) : 0;
    load_quantized(a.source, n == 0 ? 0 : row, n == 0 ? 0 : col, n, v[step]);
    const u32 bits = largest_bits(v[step]);
    if (bits > most) most = bits;
  }
  const BlockScale scale = scale_of_block(a, tensor_of(a), largest_of_block(most, shared));
#pragma unroll
  for (int step = 0; step < 8; ++step) {
    const i64 row = first + 16 * step;
    if (row < a.source.rows) write_codes(a, row, col, part_of(col, a.source.cols), v[step], scale.multiplier);
  }
  if (threadIdx.x == 0) store_scale(a, tile.row * 128, tile.col * 128, scale);
}
// A tile of 16 x 16 a warp, two lanes a row; the block's eight lie side by side.
extern "C" __global__ void __launch_bounds__(256)
    quantize_tiles_16(const __grid_constant__ QuantizeOperand a) {
  begin_grid();
  const Place at = place_of(blockIdx.x, (a.source.cols + kTileColumns - 1) / kTileColumns);
  const int lane = threadIdx.x & 31;
  const i64 first = at.col * kTileColumns + 16 * (threadIdx.x >> 5);
  const i64 row = at.row * 16 + lane / 2, col = first + 8 * (lane % 2);
  const int n = row < a.source.rows ? part_of(col, a.source.cols) : 0;
  float v[8];
  load_quantized(a.source, n == 0 ? 0 : row, n == 0 ? 0 : col, n, v);
  const BlockScale scale = scale_of_block(a, tensor_of(a), largest_of_lanes(largest_bits(v), 32));
  write_codes(a, row, col, n, v, scale.multiplier);
  if (lane == 0 && n > 0) store_scale(a, at.row * 16, first, scale);
}

}  // namespace plimsoll::cuda
