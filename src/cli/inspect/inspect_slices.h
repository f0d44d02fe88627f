// A tensor cut into pieces that fit a small buffer and no block crosses: whole rows where rows are short,
// columns of a band of rows where they are long.
#pragma once

#include <cstdint>
#include <vector>

#include "io/safetensors_reader.h"
#include "numerics/blocks.h"

namespace plimsoll::cli {

/// Numbers in a slice, at most, but for a band of tiles of one block's width.
inline constexpr int64_t kSliceElements = int64_t{1} << 18;

/// A tensor as matrices one below the other: the last two axes, or one matrix where blocks lie within rows.
struct MatrixView {
  int64_t rows = 1;         ///< of all matrices
  int64_t matrix_rows = 1;  ///< of one
  int64_t cols = 1;
};
MatrixView matrix_view(numerics::Scheme scheme, const std::vector<int64_t>& shape);

/// Rows [row, row + rows), columns [col, col + cols); several matrices only whole, and with all columns.
struct Slice {
  int64_t row = 0, rows = 0, col = 0, cols = 0;
};
/// Every element once, in the order of rows. Begins on rows and columns where blocks begin.
std::vector<Slice> slices_of(numerics::Scheme scheme, const MatrixView& view);

/// Where the scales of row `row` (the first of a row of blocks) lie among all rows of scales.
int64_t scale_row_of(numerics::Scheme scheme, const MatrixView& view, int64_t row);

}  // namespace plimsoll::cli
