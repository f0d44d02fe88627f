// Codes and scales of an operand, all of it or a band of its rows at a time.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
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
  int64_t tile_rows = kTileRows, tile_cols = kTileCols;

  /// Whole blocks of every scheme: 128 rows or columns at most. Columns of a tile that goes row by row.
  static constexpr int64_t kTileRows = 32, kTileCols = 512, kMostCols = 2048;

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
    if (!by_rows()) return;
    tile_cols = std::clamp<int64_t>(cols, 1, kMostCols);
    tile_rows = kTileRows * kTileCols / tile_cols;
  }
  /// Whether rows are rows of x, which are quantised one by one: then a tile's numbers are one row's.
  [[nodiscard]] bool by_rows() const { return !transposed && block_rows() <= 1; }
  [[nodiscard]] int64_t block_rows() const { return numerics::info(form.scheme).block_rows; }
  /// A thread's: the numbers; rows of x that are turned, or codes and scales of a tile of blocks that span
  /// rows.
  [[nodiscard]] int64_t numbers() const { return std::max(kTileRows, block_rows()) * kTileCols; }
  [[nodiscard]] int64_t thread_bytes() const { return 4 * numbers() + 4 * kTileCols + 2 * numbers(); }
};

/// Rows of x that are there: all, or from `first` on, where whole blocks begin, as many as x has.
struct OperandBand {
  StoredRows x;
  int64_t first = 0;
};

/// The largest magnitude of what threads have looked at.
class LargestMagnitude {
 public:
  void join(std::span<const float> numbers) {
    const auto bits = std::bit_cast<uint32_t>(numerics::largest_magnitude(numbers));
    uint32_t known = bits_.load(std::memory_order_relaxed);
    while (known < bits && !bits_.compare_exchange_weak(known, bits)) {
    }
  }
  [[nodiscard]] float value() const { return std::bit_cast<float>(bits_.load()); }

 private:
  std::atomic<uint32_t> bits_{0};  // magnitudes are ordered as their bits are
};

/// Rows of a band that a second-level cache holds: whole blocks of every scheme, or all.
int64_t rows_of_band(const ir::TensorType& x);

/// What a band is quantised with and to.
struct QuantizedBand {
  numerics::TensorScale tensor = {};
  ops::OperandDraws draws = {};
  std::byte *codes = nullptr, *scales = nullptr;  ///< of the whole operand
  LargestMagnitude* largest = nullptr;            ///< joined by the band's; only where rows have no transform
};

/// The largest magnitude of the band. `workspace`: thread_bytes of each thread.
float largest_of_band(const QuantizedOperand& operand, const OperandBand& band,
                      std::span<std::byte> workspace, ThreadPool& pool);
/// Codes, and the scales of blocks.
void quantize_band(const QuantizedOperand& operand, const OperandBand& band, const QuantizedBand& to,
                   std::span<std::byte> workspace, ThreadPool& pool);

}  // namespace plimsoll::cpu
