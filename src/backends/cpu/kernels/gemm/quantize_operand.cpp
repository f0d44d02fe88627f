// Codes and scales of an operand, piece by piece: rows where they lie or as f32 in a thread's scratch; tiles
// of blocks that span rows, and of transposes, as one matrix there; blocks of a transpose that are columns of
// x without moving their numbers. A scale of the tensor that is not given wants the largest magnitude first,
// and so another walk.
#include "backends/cpu/kernels/gemm/quantize_operand.h"

#include <cstring>

#include "backends/cpu/kernels/elementwise/cast.h"
#include "backends/cpu/kernels/gemm/turn_lines.h"
#include "backends/cpu/kernels/random_operand.h"
#include "base/at.h"
#include "numerics/bf16_blocks.h"
#include "numerics/block_columns.h"

namespace plimsoll::cpu {
namespace {

using numerics::Scheme;

constexpr int64_t kTileCols = QuantizedOperand::kTileCols;
constexpr int64_t kColumns = 256;     // of blocks that are turned as codes: 32 of their rows are 32 KiB
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
  if (!rounded) {
    std::memcpy(to, from, at(4 * n));
    return;
  }
  alignas(64) uint16_t low[kTileCols];
  for (int64_t i = 0; i < n; i += kTileCols) {
    const int64_t count = std::min(kTileCols, n - i);
    round_to(reinterpret_cast<const float*>(from) + i, low, ir::DType::kBf16, count);
    widen(low, ir::DType::kBf16, to + i, count);
  }
}

/// A row of x that is turned: too short for the processor to see what comes next.
void load_line(const StoredRows& x, int64_t row, const OperandTile& tile, bool rounded, float* to) {
  const int64_t size = ir::bits(x.dtype) / 8;
  const auto next = reinterpret_cast<uintptr_t>(x.row(row)) +
                    static_cast<uintptr_t>((kTurnedLines * x.stride + tile.row) * size);
  for (int64_t b = 0; b < tile.rows * size; b += 64)
    __builtin_prefetch(reinterpret_cast<const void*>(next + static_cast<uintptr_t>(b)));
  load_numbers(x, row, tile.row, tile.rows, rounded, to);
}

/// Numbers of a tile that does not go row by row.
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
        load_line(x, row - band.first, tile, operand.rounded, line);
    }
    turn_lines(lines, count, tile.rows, tile.numbers + c, tile.cols);
  }
}

bool is_transformed(const numerics::OperandForm& form) { return form.hadamard || form.stochastic; }

/// A row of a tile as f32: where x has it so, else in scratch.
std::span<const float> row_of_tile(const QuantizedOperand& operand, const OperandBand& band,
                                   const OperandTile& tile, int64_t r) {
  const auto cols = at(tile.cols);
  if (!operand.by_rows()) return {tile.numbers + r * tile.cols, cols};
  const int64_t row = tile.row + r - band.first;
  if (band.x.dtype == ir::DType::kF32 && !operand.rounded && !is_transformed(operand.form))
    return {reinterpret_cast<const float*>(band.x.row(row)) + tile.col, cols};
  load_numbers(band.x, row, tile.col, tile.cols, operand.rounded, tile.numbers);
  return {tile.numbers, cols};
}

/// body(tile) for all tiles of the band, numbers loaded but of those that go row by row.
template <class Body>
void for_tiles(const QuantizedOperand& operand, const OperandBand& band, std::span<std::byte> workspace,
               ThreadPool& pool, Body&& body) {
  const bool turned = operand.transposed;
  const int64_t first_row = turned ? 0 : band.first;
  const int64_t first_col = turned ? operand.turned.column(band.first) : 0;
  const int64_t last_col = turned ? operand.turned.column(band.first + band.x.rows) : operand.cols;
  const int64_t rows = turned ? operand.rows : band.x.rows, cols = last_col - first_col;
  const int64_t wide = ceil_div(cols, operand.tile_cols);
  pool.run(ceil_div(rows, operand.tile_rows) * wide, [&](int64_t index, int thread) {
    std::byte* const own = workspace.data() + thread * operand.thread_bytes();
    const int64_t row = index / wide * operand.tile_rows, col = index % wide * operand.tile_cols;
    const OperandTile tile{first_row + row,
                           first_col + col,
                           std::min(operand.tile_rows, rows - row),
                           std::min(operand.tile_cols, cols - col),
                           reinterpret_cast<float*>(own),
                           own + 4 * operand.numbers()};
    if (!operand.by_rows()) load_tile(operand, band, tile);
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

/// Where a row in scratch lies.
float* scratch_row(const QuantizedOperand& operand, const OperandTile& tile, int64_t r) {
  return tile.numbers + (operand.by_rows() ? 0 : r * tile.cols);
}

/// Row `r` of a tile, whose numbers are `row`.
void quantize_row(const QuantizedOperand& operand, const QuantizedBand& quantized, const OperandPlace& to,
                  const OperandTile& tile, int64_t r, std::span<const float> row) {
  const int64_t scale_count = numerics::scale_cols(to.scheme, tile.cols);
  const std::span codes(to.codes_at(tile.row + r, tile.col),
                        at(numerics::code_row_bytes(to.scheme, tile.cols)));
  const std::span scales(to.scales_at(tile.row + r, tile.col),
                         at(scale_count * numerics::scale_bytes(to.scheme)));
  if (quantized.largest != nullptr) quantized.largest->join(row);
  if (is_transformed(operand.form))
    return ops::quantize_run(operand.form, quantized.tensor, {scratch_row(operand, tile, r), row.size()},
                             codes, scales, quantized.draws, tile.row + r, tile.col);
  numerics::quantize(to.scheme, quantized.tensor, row, 1, tile.cols, codes, scales);
}

constexpr int64_t kQuantizedBandBytes = int64_t{1} << 20, kQuantizedBandRows = 128;

/// Blocks of columns of x, whose codes alone are turned: of E4M3, without a transform.
bool goes_by_columns(const QuantizedOperand& operand) {
  const numerics::SchemeInfo& s = numerics::info(operand.form.scheme);
  return operand.transposed && s.block_rows == 1 && s.codes == numerics::Format::kE4m3 &&
         !is_transformed(operand.form);
}

/// Blocks of columns of bf16 where they lie, if their bits decide; `blocks` has no rows yet.
bool quantize_bf16_blocks(const QuantizedOperand& operand, const OperandBand& band, int64_t column,
                          int64_t line, numerics::ColumnBlocks blocks, std::byte* scratch) {
  if (band.x.dtype != ir::DType::kBf16 || !numerics::has_blocks_of_bf16(blocks.scheme)) return false;
  const int64_t first = operand.turned.row(column);
  while (blocks.rows < blocks.width && operand.turned.row(column + blocks.rows) >= 0) ++blocks.rows;
  if (first < 0 || operand.turned.row(column + blocks.rows - 1) != first + blocks.rows - 1) return false;
  const auto* const x = reinterpret_cast<const uint16_t*>(band.x.row(first - band.first)) + line;
  return numerics::quantize_bf16_columns(blocks, x, band.x.stride, scratch);
}

void quantize_by_columns(const QuantizedOperand& operand, const OperandBand& band,
                         const QuantizedBand& quantized, std::span<std::byte> workspace, ThreadPool& pool) {
  const OperandPlace to{operand.form.scheme, quantized.codes, quantized.scales, operand.cols};
  const int64_t block = numerics::info(to.scheme).block_cols;
  const int64_t stride = std::min(kColumns, operand.numbers() / block);
  const int64_t first = operand.turned.column(band.first),
                last = operand.turned.column(band.first + band.x.rows);
  const int64_t wide = ceil_div(operand.rows, stride);
  pool.run(ceil_div(last - first, block) * wide, [&](int64_t index, int thread) {
    std::byte* const own = workspace.data() + thread * operand.thread_bytes();
    auto* const numbers = reinterpret_cast<float*>(own);
    const int64_t column = first + index / wide * block, line = index % wide * stride;
    numerics::ColumnBlocks blocks{.scheme = to.scheme,
                                  .x = numbers,
                                  .cols = std::min(stride, operand.rows - line),
                                  .stride = stride,
                                  .width = std::min(block, last - column),
                                  .codes = to.codes_at(line, column),
                                  .code_stride = numerics::code_row_bytes(to.scheme, operand.cols),
                                  .scales = to.scales_at(line, column)};
    blocks.scale_stride = numerics::scale_cols(to.scheme, operand.cols) * numerics::scale_bytes(to.scheme);
    std::byte* const scratch = own + 4 * operand.numbers();
    if (quantize_bf16_blocks(operand, band, column, line, blocks, scratch)) return;
    for (int64_t k = 0; k < blocks.width; ++k, ++blocks.rows) {
      const int64_t row = operand.turned.row(column + k);
      if (row < 0) break;  // zeros end a sequence's last block
      float* const to_row = numbers + k * stride;
      load_numbers(band.x, row - band.first, line, blocks.cols, operand.rounded, to_row);
      std::fill(to_row + blocks.cols, to_row + stride, 0.0F);
    }
    numerics::quantize_columns(blocks, scratch);
  });
}

/// A row of bf16 as it lies, where its bits decide.
bool quantize_bf16_row(const QuantizedOperand& operand, const OperandBand& band,
                       const QuantizedBand& quantized, const OperandPlace& to, const OperandTile& tile,
                       int64_t r) {
  if (!operand.by_rows() || band.x.dtype != ir::DType::kBf16 || quantized.largest != nullptr ||
      is_transformed(operand.form) || !numerics::has_blocks_of_bf16(to.scheme))
    return false;
  const int64_t row = tile.row + r;
  const auto* const from = reinterpret_cast<const uint16_t*>(band.x.row(row - band.first)) + tile.col;
  return numerics::quantize_bf16_row(to.scheme, {from, at(tile.cols)}, to.codes_at(row, tile.col),
                                     to.scales_at(row, tile.col));
}

}  // namespace

int64_t rows_of_band(const ir::TensorType& x) {
  const int64_t row_bytes = x.shape.dim(-1) * ir::bits(x.dtype) / 8;
  return std::min(x.shape.num_rows(),
                  round_up(std::max(int64_t{1}, kQuantizedBandBytes / row_bytes), kQuantizedBandRows));
}

float largest_of_band(const QuantizedOperand& operand, const OperandBand& band,
                      std::span<std::byte> workspace, ThreadPool& pool) {
  LargestMagnitude largest;
  for_tiles(operand, band, workspace, pool, [&](const OperandTile& tile) {
    for (int64_t r = 0; r < tile.rows; ++r) {
      const std::span<const float> row = row_of_tile(operand, band, tile, r);
      if (operand.form.hadamard) numerics::random_hadamard({scratch_row(operand, tile, r), row.size()});
      largest.join(row);
    }
  });
  return largest.value();
}

void quantize_band(const QuantizedOperand& operand, const OperandBand& band, const QuantizedBand& quantized,
                   std::span<std::byte> workspace, ThreadPool& pool) {
  if (goes_by_columns(operand)) return quantize_by_columns(operand, band, quantized, workspace, pool);
  const OperandPlace to{operand.form.scheme, quantized.codes, quantized.scales, operand.cols};
  for_tiles(operand, band, workspace, pool, [&](const OperandTile& tile) {
    if (operand.block_rows() > 1) return quantize_tile(to, quantized.tensor, tile);
    for (int64_t r = 0; r < tile.rows; ++r)
      if (!quantize_bf16_row(operand, band, quantized, to, tile, r))
        quantize_row(operand, quantized, to, tile, r, row_of_tile(operand, band, tile, r));
  });
}

namespace {

ops::OperandDraws draws_of(const KernelCall& call, const QuantizedOperand& operand) {
  if (!operand.form.stochastic) return {};
  return {operand.shape, operand.transposed, stream_of(call.inputs[2], call.op->attrs)};
}

/// The scale of the tensor: given, so that one walk finds the largest magnitude too, or from that one's own.
numerics::TensorScale scale_of(const QuantizedOperand& operand, const KernelCall& call, ThreadPool& pool) {
  if (const TensorRef scales = input_or_none(call, 1))
    return numerics::given_scale(0, scales.as<const float>()[call.op->attrs.i64("slot")]);
  if (!numerics::info(operand.form.scheme).has_tensor_scale) return {};
  const float amax = largest_of_band(operand, {stored_rows(call.inputs[0])}, call.workspace, pool);
  *call.outputs[2].as<float>() = amax;
  return numerics::tensor_scale(operand.form.scheme, amax);
}

int64_t quantize_workspace_bytes(const ir::OpTypes& types, int num_threads) {
  return num_threads * QuantizedOperand(types.inputs[0].shape, types.attrs, false).thread_bytes();
}

/// Both copies, band by band, so that memory is read once.
void quantize_both(const KernelCall& call, ThreadPool& pool) {
  const TensorRef& x = call.inputs[0];
  const QuantizedOperand plain(x.shape(), call.op->attrs, false), turned(x.shape(), call.op->attrs, true);
  const StoredRows all = stored_rows(x);
  const int64_t step = rows_of_band(x.type);
  for (int64_t first = 0, end = 0; first < all.rows; first = end) {
    end = turned.turned.band_end(first, step);
    const OperandBand band{all.from(first, end - first), first};
    quantize_band(plain, band, {.codes = call.outputs[0].data, .scales = call.outputs[1].data},
                  call.workspace, pool);
    quantize_band(turned, band, {.codes = call.outputs[2].data, .scales = call.outputs[3].data},
                  call.workspace, pool);
  }
}

void quantize_operand(const KernelCall& call, ThreadPool& pool) {
  const ir::Attrs& attrs = call.op->attrs;
  if (attrs.flag("both")) return quantize_both(call, pool);
  const OperandBand all{stored_rows(call.inputs[0])};
  const QuantizedOperand operand(call.inputs[0].shape(), attrs, attrs.flag("transposed"));
  const numerics::TensorScale tensor = scale_of(operand, call, pool);
  LargestMagnitude largest;
  const bool is_given = static_cast<bool>(input_or_none(call, 1));
  quantize_band(operand, all,
                {tensor, draws_of(call, operand), call.outputs[0].data, call.outputs[1].data,
                 is_given ? &largest : nullptr},
                call.workspace, pool);
  if (is_given) *call.outputs[2].as<float>() = largest.value();
  if (operand.block_rows() == 0) *call.outputs[1].as<float>() = tensor.decode;
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
