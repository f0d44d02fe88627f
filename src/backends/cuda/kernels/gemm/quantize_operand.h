// Codes and scales of an operand, all of it or a band of its rows at a time.
#pragma once

#include "backends/cuda/kernels/gemm/quantize_operand_args.h"
#include "backends/cuda/kernels/operands.h"
#include "numerics/fp8_recipes.h"
#include "ops/scaled_operand.h"

namespace plimsoll::cuda {

/// What is launched for an operand, from its types.
struct QuantizeForm {
  numerics::OperandForm form;
  bool transposed;
  int64_t rows, cols;  ///< of the quantised matrix
  ops::TurnedRows turned;

  QuantizeForm(const ir::Attrs& attrs, const ir::Shape& x, bool is_transposed)
      : form(ops::form_of(attrs)), transposed(is_transposed), turned(x, attrs) {
    const ir::Shape matrix = ops::quantized_matrix(x, attrs, transposed);
    rows = matrix.num_rows();
    cols = matrix.dim(-1);
  }
  [[nodiscard]] const numerics::SchemeInfo& scheme() const { return numerics::info(form.scheme); }
  [[nodiscard]] bool has_tiles() const { return scheme().block_rows > 1; }
  /// Of the walk for the largest magnitude: which way it goes matters to the transform alone.
  [[nodiscard]] bool amax_is_turned() const { return transposed && form.hadamard; }
  [[nodiscard]] int64_t amax_blocks() const {
    if (!scheme().has_tensor_scale) return 0;
    const bool as_it_lies = transposed && !amax_is_turned();
    return walk(as_it_lies ? cols : rows, as_it_lies ? rows : cols, amax_is_turned()).x;
  }
  [[nodiscard]] static Dim walk(int64_t rows, int64_t cols, bool turned) {
    if (turned)
      return blocks(ceil_div(rows, int64_t{kTurnedColumns}) * ceil_div(cols, int64_t{kRunElements}), 1);
    return blocks(rows * ceil_div(cols, int64_t{kRunElements}), kRunWarps);
  }
  [[nodiscard]] Dim code_blocks() const {
    if (!has_tiles()) return walk(rows, cols, transposed);
    return blocks(ceil_div(rows, scheme().block_rows) * ceil_div(cols, int64_t{kTileColumns}), 1);
  }
};

/// Rows of x from `first` on, where whole blocks begin, and how all rows lie.
struct BandRows {
  TensorRef x;
  int64_t first;
  ops::TurnedRows all;
};

/// Where the largest magnitudes of blocks of threads go, and the scale of the tensor.
struct QuantizeScratch {
  u32* largest;
  DeviceTensorScale* tensor;
  QuantizeScratch(Scratch& scratch, bool has_scale, int64_t magnitudes)
      : largest(scratch.take<u32>(magnitudes)), tensor(scratch.take<DeviceTensorScale>(has_scale ? 1 : 0)) {}
  QuantizeScratch(Scratch& scratch, const QuantizeForm& form)
      : QuantizeScratch(scratch, form.scheme().has_tensor_scale, form.amax_blocks()) {}
};

/// Queues the largest magnitudes of a band to `largest`; how many they are. `form`: of the band.
Result<int64_t> queue_amax(const ir::Attrs& attrs, const QuantizeForm& form, const TensorRef& x, u32* largest,
                           Stream& stream);
/// The scale of the tensor from `count` of them, or `given`; null results are not wanted.
struct TensorScaleResults {
  float *amax = nullptr, *decode = nullptr;
};
Status queue_scale(const QuantizeForm& form, const QuantizeScratch& scratch, int64_t count,
                   const float* given, const TensorScaleResults& results, Stream& stream);
/// Where those of a band go: from the whole operand's `to` on; with what it is quantised from.
QuantizeOperand codes_of_band(const ir::Attrs& attrs, const QuantizeForm& form, const BandRows& band,
                              QuantizeOperand to);
/// Blocks of threads that make both copies.
Dim tiles_of_both(const QuantizeForm& plain, const QuantizeForm& turned);

/// Codes and scales of blocks; `codes` and `scales` are those of the whole operand.
Status queue_codes(const ir::Attrs& attrs, const QuantizeForm& form, const BandRows& band, QuantizeOperand to,
                   Stream& stream);
/// Those of x and of its transpose, of the attribute `both`. `x`: the shape of the band.
Status queue_both(const ir::Attrs& attrs, const ir::Shape& x, const BandRows& band, QuantizeBoth to,
                  Stream& stream);

}  // namespace plimsoll::cuda
