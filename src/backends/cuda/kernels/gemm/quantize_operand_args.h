// Arguments of quantize_operand.cu.
#pragma once

#include "backends/cuda/kernels/gemm/scaled_codes_args.h"
#include "backends/cuda/kernels/norm/row_strides_args.h"

namespace plimsoll::cuda {

/// Elements of a row that a warp takes, eight a lane, and warps of a block.
constexpr int kRunElements = 256, kRunWarps = 8;
/// A block of quantize_turned takes kRunElements rows of x, as many columns as this.
constexpr int kTurnedColumns = 32;
/// Elements of a row that a block of tiles takes: one of 128 x 128, eight of 16 x 16; a multiple of all
/// blocks.
constexpr int kTileColumns = 128;

/// What is quantised: x, or, `transposed`, its transpose; [rows, cols] is the quantised matrix.
struct OperandSource {
  Operand x;
  RowStrides strides;
  i64 rows = 0, cols = 0;
  i64 tokens = 1, columns = 1;  ///< ops::TurnedRows
  int transposed = 0;
  int rounded = 0;   ///< to bf16 before anything else
  int hadamard = 0;  ///< runs of 16 go through the random Hadamard transform
};

/// largest[block]: the bits of the largest magnitude that the block has seen.
struct OperandAmax {
  OperandSource source;
  u32* largest = nullptr;
};
/// The scale of the tensor from n of these; `given` [slot]: the scale itself, where it comes from a state.
struct OperandScale {
  const u32* largest = nullptr;
  i64 n = 0;
  float largest_code = 0;  ///< times what scales of blocks can hold
  const float* given = nullptr;
  float *amax = nullptr, *decode = nullptr;  ///< results; null: not wanted
  DeviceTensorScale* tensor = nullptr;
};
struct QuantizeOperand {
  OperandSource source;
  CodeScheme scheme;
  const DeviceTensorScale* tensor = nullptr;  ///< null: the scheme has none
  unsigned char* codes = nullptr;
  void* scales = nullptr;  ///< of blocks
  i64 pitch = 0;           ///< elements of a row of codes: more than the columns where these are some of them
  /// Codes are rounded stochastically where `random` is given: `key` and the token's place in its sequence
  /// of `tokens` say which word each draws (ops/scaled_operand.h).
  const u32* random = nullptr;
  u32 key = 0;
  i64 tokens = 1;
};
/// A copy of x and one of its transpose, in blocks of one row of 128 or 32 codes in E4M3. A block of threads
/// takes kTileColumns columns of each.
struct QuantizeBoth {
  QuantizeOperand plain, turned;
};

inline constexpr DeviceKernel<OperandAmax> kOperandAmax{"gemm/quantize_operand", "operand_amax"};
inline constexpr DeviceKernel<OperandAmax> kOperandAmaxTurned{"gemm/quantize_operand", "operand_amax_turned"};
inline constexpr DeviceKernel<OperandScale> kOperandScale{"gemm/quantize_operand", "operand_scale"};
inline constexpr DeviceKernel<QuantizeOperand> kQuantizeRuns{"gemm/quantize_operand", "quantize_runs"};
inline constexpr DeviceKernel<QuantizeOperand> kQuantizeTurned{"gemm/quantize_operand", "quantize_turned"};
inline constexpr DeviceKernel<QuantizeBoth> kQuantizeBoth{"gemm/quantize_operand", "quantize_both"};
inline constexpr DeviceKernel<QuantizeOperand> kQuantizeTiles128{"gemm/quantize_operand",
                                                                 "quantize_tiles_128"};
inline constexpr DeviceKernel<QuantizeOperand> kQuantizeTiles16{"gemm/quantize_operand", "quantize_tiles_16"};

}  // namespace plimsoll::cuda
