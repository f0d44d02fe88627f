// Codes and scales of an operand, all of it or a band of its rows at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "backends/cpu/kernels/gemm/linear.h"
#include "base/units.h"
#include "ops/scaled_operand.h"

namespace plimsoll::cpu {

struct QuantizedOperand {
  ir::Shape shape;  ///< of x
  numerics::OperandForm form;
  bool transposed = false, rounded = false;
  int64_t rows = 0, cols = 0;  ///< of the quantised matrix
  ops::TurnedRows turned;      ///< in the transpose
  int64_t tile_rows = kTileRows;

  /// Whole blocks of every scheme: 128 rows or columns at most.
  static constexpr int64_t kTileRows = 32, kTileCols = 512;

  QuantizedOperand(const ir::Shape& x, const ir::Attrs& attrs, bool is_transposed)
      : shape(x),
        form(ops::form_of(attrs)),
        transposed(is_transposed),
        rounded(attrs.find("precision") != nullptr),
        turned(x, attrs) {
    const ir::Shape matrix = ops::quantized_matrix(x, attrs, transposed);
    rows = matrix.num_rows();
    cols = matrix.dim(-1);
    tile_rows = std::max(kTileRows, block_rows());
  }
  [[nodiscard]] int64_t block_rows() const { return numerics::info(form.scheme).block_rows; }
  /// A thread's: the numbers; rows of x that are turned, or codes and scales of a tile of blocks that span
  /// rows.
  [[nodiscard]] int64_t numbers() const { return tile_rows * kTileCols; }
  [[nodiscard]] int64_t thread_bytes() const { return 4 * numbers() + 4 * kTileCols + 2 * numbers(); }
};

/// Rows of x that are there: all, or from `first` on, where whole blocks begin, as many as x has.
struct OperandBand {
  StoredRows x;
  int64_t first = 0;
};

/// What a band is quantised with and to.
struct QuantizedBand {
  numerics::TensorScale tensor = {};
  ops::OperandDraws draws = {};
  std::byte *codes = nullptr, *scales = nullptr;  ///< of the whole operand
};

/// The largest magnitude of the band. `workspace`: thread_bytes of each thread.
float largest_of_band(const QuantizedOperand& operand, const OperandBand& band,
                      std::span<std::byte> workspace, ThreadPool& pool);
/// Codes, and the scales of blocks.
void quantize_band(const QuantizedOperand& operand, const OperandBand& band, const QuantizedBand& to,
                   std::span<std::byte> workspace, ThreadPool& pool);

}  // namespace plimsoll::cpu
