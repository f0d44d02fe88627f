// The weight's numbers are made a band of the result's columns at a time, in what the product reads them as,
// small enough for the last-level cache; the product packs them from there. A band less wide than
// kLeastColumns would have x packed too often.
#include "backends/cpu/kernels/gemm/linear_quantized.h"

#include <algorithm>

#include "backends/cpu/kernels/gemm/gemm.h"
#include "backends/cpu/kernels/gemm/linear.h"
#include "ops/block_values.h"

namespace plimsoll::cpu {
namespace {

constexpr int64_t kBandBytes = int64_t{4} << 20, kLeastColumns = 256, kColumnStep = 64;
/// Elements that a thread makes at once: long against the cost of claiming them.
constexpr int64_t kPieceElements = int64_t{16} << 10;

struct Band {
  Precision precision;
  ir::DType dtype;  ///< of its numbers
  int64_t inner, columns;

  Band(const ir::Attrs& attrs, const ir::TensorType& x, const ir::TensorType& weight, int64_t out)
      : precision(precision_of(attrs, x.dtype, weight.dtype)),
        dtype(precision == Precision::kBf16 ? ir::DType::kBf16 : ir::DType::kF32),
        inner(x.shape.dim(-1)) {
    const int64_t fitting = kBandBytes / (inner * element_bytes()) / kColumnStep * kColumnStep;
    columns = std::min(out, std::max(kLeastColumns, fitting));
  }
  [[nodiscard]] int64_t element_bytes() const { return ir::bits(dtype) / 8; }
  [[nodiscard]] int64_t bytes() const { return round_up(inner * columns * element_bytes(), int64_t{64}); }
};

GemmTypes gemm_types(const Band& band, const ir::TensorType& y) { return {band.precision, y.dtype}; }

/// Runs of the weight's elements, `rows` of them `row` elements apart, side by side in the band.
void make_numbers(const Band& band, const TensorRef& weight, int64_t first, int64_t rows, int64_t row,
                  int64_t run, std::byte* to, ThreadPool& pool) {
  const int64_t piece = std::max<int64_t>(1, kPieceElements / run);
  pool.run(ceil_div(rows, piece), [&](int64_t task, int) {
    for (int64_t r = task * piece; r < std::min(rows, (task + 1) * piece); ++r) {
      std::byte* at = to + r * run * band.element_bytes();
      const auto count = static_cast<size_t>(run);
      if (band.dtype == ir::DType::kBf16)
        ops::dequantize(weight.type, weight.data, first + r * row,
                        std::span(reinterpret_cast<uint16_t*>(at), count));
      else
        ops::dequantize(weight.type, weight.data, first + r * row,
                        std::span(reinterpret_cast<float*>(at), count));
    }
  });
}

}  // namespace

int64_t quantized_workspace_bytes(const ir::OpTypes& types, int num_threads) {
  const ir::TensorType &x = types.inputs[0], &y = types.outputs[0];
  const Band band(types.attrs, x, types.inputs[1], y.shape.dim(-1));
  return band.bytes() +
         gemm_workspace_bytes(x.shape.num_rows(), band.columns, band.inner, num_threads, gemm_types(band, y));
}

void quantized_linear(const KernelCall& call, ThreadPool& pool) {
  const StoredRows x = stored_rows(call.inputs[0]), y = stored_rows(call.outputs[0]);
  const TensorRef weight = call.inputs[1], bias = input_or_none(call, 2);
  const bool transposed = call.op->attrs.flag("transposed");
  const Band band(call.op->attrs, call.inputs[0].type, weight.type, y.cols);
  std::byte* const numbers = call.workspace.data();
  for (int64_t begin = 0; begin < y.cols; begin += band.columns) {
    const int64_t columns = std::min(band.columns, y.cols - begin);
    if (transposed)  // [in, out]
      make_numbers(band, weight, begin, x.cols, y.cols, columns, numbers, pool);
    else
      make_numbers(band, weight, begin * x.cols, columns, x.cols, x.cols, numbers, pool);
    gemm({.m = y.rows,
          .n = columns,
          .k = x.cols,
          .a = {x.data, x.stride, 1, x.dtype},
          .b = transposed ? ConstMatrix{numbers, columns, 1, band.dtype}
                          : ConstMatrix{numbers, 1, x.cols, band.dtype},
          .c = y.data + begin * ir::bits(y.dtype) / 8,
          .c_row_stride = y.stride,
          .bias = bias ? bias.data + begin * ir::bits(bias.type.dtype) / 8 : nullptr,
          .precision = band.precision,
          .c_dtype = y.dtype,
          .bias_dtype = bias.type.dtype},
         pool, call.workspace.subspan(static_cast<size_t>(band.bytes())));
  }
}

}  // namespace plimsoll::cpu
