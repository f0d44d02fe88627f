// Blocks of one row of a matrix's transpose, from the matrix as it lies: no number moves, only its code does.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/blocks.h"

namespace plimsoll::numerics {

/// A block of each of some columns of x, which becomes a block of a row of the transpose.
struct ColumnBlocks {
  Scheme scheme = Scheme::kMxfp8;  ///< with codes of E4M3 in blocks of one row
  const float* x = nullptr;        ///< rows x stride; what is behind `cols` is read, and goes nowhere
  int64_t rows = 0, cols = 0;      ///< rows: at most a block's; cols: at most kMostColumns
  int64_t stride = 0;              ///< a multiple of kColumnUnit, not below cols
  int64_t width = 0;               ///< codes of a block: zeros behind the rows
  std::byte* codes = nullptr;      ///< of the first column; the next ones code_stride bytes apart
  int64_t code_stride = 0;
  std::byte* scales = nullptr;
  int64_t scale_stride = 0;
};
inline constexpr int64_t kMostColumns = 512, kColumnUnit = 64;

/// Codes and scales with the bits that quantize() gives of the transpose. `scratch`: stride x width rounded
/// up to 16 bytes, aligned to 64.
void quantize_columns(const ColumnBlocks& blocks, std::byte* scratch);

/// The same of bf16 numbers where they lie, rows `row_stride` numbers apart; blocks.x is not read. False,
/// with codes and scales written in part, where bf16_blocks.h says that of rows, or with a number of columns
/// that 32 does not divide.
bool quantize_bf16_columns(const ColumnBlocks& blocks, const uint16_t* x, int64_t row_stride,
                           std::byte* scratch);

}  // namespace plimsoll::numerics
