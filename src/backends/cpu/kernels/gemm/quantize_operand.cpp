// Codes and scales of an operand, tile by tile: a tile's numbers become f32 in a thread's scratch, as they
// lie or turned, and are quantised there row by row, or as one matrix where blocks span rows. A scale of the
// tensor wants the largest magnitude first, and so another walk.
#include "backends/cpu/kernels/gemm/quantize_operand.h"

#include <atomic>
#include <bit>
#include <cstring>

#include "backends/cpu/kernels/elementwise/cast.h"
#include "backends/cpu/kernels/random_operand.h"
#include "base/at.h"

namespace plimsoll::cpu {
namespace {

using numerics::Scheme;

constexpr int64_t kTileCols = QuantizedOperand::kTileCols;
constexpr int64_t kTurnedLines = 16;  // rows of x that are turned at once: a cache line of each of the tile's

struct OperandTile {
  int64_t row, col, rows, cols;
  float* numbers;      ///< rows x cols
  std::byte* scratch;  ///< behind them
};

/// `n` numbers of x from element `first` of a row on.
void load_numbers(const StoredRows& x, int64_t row, int64_t first, int64_t n, bool rounded, float* to) {
  const std::byte* from = x.row(row) + first * ir::bits(x.dtype) / 8;
  if (x.dtype != ir::DType::kF32) return widen(from, x.dtype, to, n);
  std::memcpy(to, from, at(4 * n));
  if (!rounded) return;
  alignas(64) uint16_t low[kTileCols];
  round_to(to, low, ir::DType::kBf16, n);
  widen(low, ir::DType::kBf16, to, n);
}

void load_tile(const QuantizedOperand& operand, const OperandBand& band, const OperandTile& tile) {
  const StoredRows& x = band.x;
  if (!operand.transposed) {
    for (int64_t r = 0; r < tile.rows; ++r)
      load_numbers(x, tile.row + r - band.first, tile.col, tile.cols, operand.rounded,
                   tile.numbers + r * tile.cols);
    return;
  }
  auto* const lines = reinterpret_cast<float*>(tile.scratch);
  for (int64_t c = 0; c < tile.cols; c += kTurnedLines) {
    const int64_t count = std::min(kTurnedLines, tile.cols - c);
    for (int64_t k = 0; k < count; ++k) {
      float* const line = lines + k * tile.rows;
      if (const int64_t row = operand.turned.row(tile.col + c + k); row < 0)
        std::fill_n(line, tile.rows, 0.0F);
      else
        load_numbers(x, row - band.first, tile.row, tile.rows, operand.rounded, line);
    }
    for (int64_t r = 0; r < tile.rows; ++r)
      for (int64_t k = 0; k < count; ++k) tile.numbers[r * tile.cols + c + k] = lines[k * tile.rows + r];
  }
}

/// body(tile, numbers loaded) for all tiles of the band.
template <class Body>
void for_tiles(const QuantizedOperand& operand, const OperandBand& band, std::span<std::byte> workspace,
               ThreadPool& pool, Body&& body) {
  const bool turned = operand.transposed;
  const int64_t first_row = turned ? 0 : band.first;
  const int64_t first_col = turned ? operand.turned.column(band.first) : 0;
  const int64_t last_col = turned ? operand.turned.column(band.first + band.x.rows) : operand.cols;
  const int64_t rows = turned ? operand.rows : band.x.rows, cols = last_col - first_col;
  const int64_t wide = ceil_div(cols, kTileCols);
  pool.run(ceil_div(rows, operand.tile_rows) * wide, [&](int64_t index, int thread) {
    std::byte* const own = workspace.data() + thread * operand.thread_bytes();
    const int64_t row = index / wide * operand.tile_rows, col = index % wide * kTileCols;
    const OperandTile tile{first_row + row,
                           first_col + col,
                           std::min(operand.tile_rows, rows - row),
                           std::min(kTileCols, cols - col),
                           reinterpret_cast<float*>(own),
                           own + 4 * operand.numbers()};
    load_tile(operand, band, tile);
    body(tile);
  });
}

/// Where a row's codes and scales of columns from `col` on lie.
struct OperandPlace {
  Scheme scheme;
  std::byte *codes, *scales;
  int64_t cols;
  [[nodiscard]] std::byte* codes_at(int64_t row, int64_t col) const {
    const int64_t bits = numerics::info(numerics::info(scheme).codes).stored_bits;
    return codes + row * numerics::code_row_bytes(scheme, cols) + col * bits / 8;
  }
  [[nodiscard]] std::byte* scales_at(int64_t row, int64_t col) const {
    const numerics::SchemeInfo& s = numerics::info(scheme);
    if (s.block_rows == 0) return scales;
    const int64_t index = row / s.block_rows * numerics::scale_cols(scheme, cols) + col / s.block_cols;
    return scales + index * numerics::scale_bytes(scheme);
  }
};

/// Blocks that span rows: the tile by itself, then its rows to their places.
void quantize_tile(const OperandPlace& to, const numerics::TensorScale& tensor, const OperandTile& tile) {
  const Scheme scheme = to.scheme;
  const int64_t code_bytes = numerics::code_row_bytes(scheme, tile.cols);
  const int64_t scale_rows = numerics::scale_rows(scheme, tile.rows);
  const int64_t scale_bytes = numerics::scale_cols(scheme, tile.cols) * numerics::scale_bytes(scheme);
  std::byte *const codes = tile.scratch, *const scales = codes + tile.rows * code_bytes;
  numerics::quantize(scheme, tensor, {tile.numbers, at(tile.rows * tile.cols)}, tile.rows, tile.cols,
                     {codes, at(tile.rows * code_bytes)}, {scales, at(scale_rows * scale_bytes)});
  for (int64_t r = 0; r < tile.rows; ++r)
    std::memcpy(to.codes_at(tile.row + r, tile.col), codes + r * code_bytes, at(code_bytes));
  for (int64_t r = 0; r < scale_rows; ++r)
    std::memcpy(to.scales_at(tile.row + r * numerics::info(scheme).block_rows, tile.col),
                scales + r * scale_bytes, at(scale_bytes));
}

}  // namespace

float largest_of_band(const QuantizedOperand& operand, const OperandBand& band,
                      std::span<std::byte> workspace, ThreadPool& pool) {
  std::atomic<uint32_t> most{0};  // magnitudes are ordered as their bits are
  for_tiles(operand, band, workspace, pool, [&](const OperandTile& tile) {
    const std::span numbers(tile.numbers, at(tile.rows * tile.cols));
    if (operand.form.hadamard) numerics::random_hadamard(numbers);
    const auto bits = std::bit_cast<uint32_t>(numerics::largest_magnitude(numbers));
    uint32_t known = most.load();
    while (known < bits && !most.compare_exchange_weak(known, bits)) {
    }
  });
  return std::bit_cast<float>(most.load());
}

void quantize_band(const QuantizedOperand& operand, const OperandBand& band, const QuantizedBand& quantized,
                   std::span<std::byte> workspace, ThreadPool& pool) {
  const OperandPlace to{operand.form.scheme, quantized.codes, quantized.scales, operand.cols};
  for_tiles(operand, band, workspace, pool, [&](const OperandTile& tile) {
    if (operand.block_rows() > 1) return quantize_tile(to, quantized.tensor, tile);
    const auto code_bytes = at(numerics::code_row_bytes(to.scheme, tile.cols));
    const auto scale_bytes =
        at(numerics::scale_cols(to.scheme, tile.cols) * numerics::scale_bytes(to.scheme));
    for (int64_t r = 0; r < tile.rows; ++r)
      ops::quantize_run(operand.form, quantized.tensor, {tile.numbers + r * tile.cols, at(tile.cols)},
                        {to.codes_at(tile.row + r, tile.col), code_bytes},
                        {to.scales_at(tile.row + r, tile.col), scale_bytes}, quantized.draws, tile.row + r,
                        tile.col);
  });
}

namespace {

ops::OperandDraws draws_of(const KernelCall& call, const QuantizedOperand& operand) {
  if (!operand.form.stochastic) return {};
  return {operand.shape, operand.transposed, stream_of(call.inputs[2], call.op->attrs)};
}

numerics::TensorScale scale_of(const QuantizedOperand& operand, const KernelCall& call, ThreadPool& pool) {
  if (!numerics::info(operand.form.scheme).has_tensor_scale) return {};
  const float amax = largest_of_band(operand, {stored_rows(call.inputs[0])}, call.workspace, pool);
  *call.outputs[2].as<float>() = amax;
  const TensorRef scales = input_or_none(call, 1);
  if (!scales) return numerics::tensor_scale(operand.form.scheme, amax);
  return numerics::given_scale(amax, scales.as<const float>()[call.op->attrs.i64("slot")]);
}

int64_t quantize_workspace_bytes(const ir::OpTypes& types, int num_threads) {
  return num_threads * QuantizedOperand(types.inputs[0].shape, types.attrs, false).thread_bytes();
}

void quantize_operand(const KernelCall& call, ThreadPool& pool) {
  const ir::Attrs& attrs = call.op->attrs;
  const OperandBand all{stored_rows(call.inputs[0])};
  const QuantizedOperand operand(call.inputs[0].shape(), attrs, attrs.flag("transposed"));
  const numerics::TensorScale tensor = scale_of(operand, call, pool);
  quantize_band(operand, all, {tensor, draws_of(call, operand), call.outputs[0].data, call.outputs[1].data},
                call.workspace, pool);
  if (operand.block_rows() == 0) *call.outputs[1].as<float>() = tensor.decode;
  if (!attrs.flag("both")) return;
  quantize_band(QuantizedOperand(call.inputs[0].shape(), attrs, /*is_transposed=*/true), all,
                {.codes = call.outputs[2].data, .scales = call.outputs[3].data}, call.workspace, pool);
}

}  // namespace

std::span<const Kernel> quantize_operand_kernels() {
  static constexpr Kernel kernels[] = {{.op = "quantize_operand",
                                        .run = quantize_operand,
                                        .workspace_bytes = quantize_workspace_bytes,
                                        .strided_inputs = 0b1,
                                        .stored_dtypes = true}};
  return kernels;
}

}  // namespace plimsoll::cpu
