#include "cli/inspect/inspect_slices.h"

#include <algorithm>

#include "base/units.h"

namespace plimsoll::cli {
namespace {

/// Columns of a slice are a multiple of every block's width.
constexpr int64_t kColumns = 256;

int64_t band_rows(numerics::Scheme scheme) { return std::max<int64_t>(1, numerics::info(scheme).block_rows); }

}  // namespace

MatrixView matrix_view(numerics::Scheme scheme, const std::vector<int64_t>& shape) {
  MatrixView view;
  if (!shape.empty()) view.cols = shape.back();
  for (size_t i = 0; i + 1 < shape.size(); ++i) view.rows *= shape[i];
  const bool has_tiles = band_rows(scheme) > 1;
  view.matrix_rows = !has_tiles ? view.rows : shape.size() >= 2 ? shape[shape.size() - 2] : 1;
  return view;
}

std::vector<Slice> slices_of(numerics::Scheme scheme, const MatrixView& view) {
  std::vector<Slice> slices;
  if (view.rows == 0 || view.cols == 0) return slices;
  const int64_t band = std::min(band_rows(scheme), view.matrix_rows);
  const bool is_wide = band * view.cols > kSliceElements;
  const int64_t width = is_wide ? std::max(kColumns, kSliceElements / band / kColumns * kColumns) : view.cols;
  int64_t height = is_wide ? band : kSliceElements / view.cols / band * band;
  // Matrices of few rows go together.
  const bool several = !is_wide && height >= view.matrix_rows;
  if (several) height = kSliceElements / view.cols / view.matrix_rows * view.matrix_rows;
  for (int64_t row = 0; row < view.rows;) {
    const int64_t left = several ? view.rows - row : view.matrix_rows - row % view.matrix_rows;
    const int64_t rows = std::min(height, left);
    for (int64_t col = 0; col < view.cols; col += width)
      slices.push_back({row, rows, col, std::min(width, view.cols - col)});
    row += rows;
  }
  return slices;
}

int64_t scale_row_of(numerics::Scheme scheme, const MatrixView& view, int64_t row) {
  return row / view.matrix_rows * numerics::scale_rows(scheme, view.matrix_rows) +
         row % view.matrix_rows / band_rows(scheme);
}

}  // namespace plimsoll::cli
