#include "models/blocks/position_grid.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/ops.h"

namespace plimsoll::models {
namespace {

/// Keys 1981 with a = -0.75, at distance `x` from the sample.
double cubic(double x) {
  constexpr double a = -0.75;
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/// Weights [to, from] of one axis.
std::vector<double> axis_weights(int64_t from, int64_t to) {
  std::vector<double> weights(static_cast<size_t>(from * to), 0.0);
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  for (int64_t i = 0; i < to; ++i) {
    const double at = (static_cast<double>(i) + 0.5) * scale - 0.5, floor = std::floor(at);
    for (int64_t tap = -1; tap <= 2; ++tap) {
      const int64_t j = std::clamp(static_cast<int64_t>(floor) + tap, int64_t{0}, from - 1);
      weights[static_cast<size_t>(i * from + j)] += cubic(at - floor - static_cast<double>(tap));
    }
  }
  return weights;
}

}  // namespace

std::vector<float> resampling_matrix(int64_t side, int64_t rows, int64_t columns) {
  const std::vector<double> down = axis_weights(side, rows), across = axis_weights(side, columns);
  std::vector<float> matrix;
  matrix.reserve(static_cast<size_t>(rows * columns * side * side));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t y = 0; y < side; ++y)
        for (int64_t x = 0; x < side; ++x)
          matrix.push_back(static_cast<float>(down[static_cast<size_t>(r * side + y)] *
                                              across[static_cast<size_t>(c * side + x)]));
  return matrix;
}

ir::ValueId resample_positions(ir::Builder& b, ir::ValueId positions, ir::ValueId matrix) {
  const ir::Shape shape = b.type(positions).shape, grid = b.type(matrix).shape;
  const int64_t images = shape.dim(0), width = shape.dim(2), rows = grid.dim(0), old = grid.dim(1);
  const ir::ValueId token = ops::slice(b, positions, 1, 0, 1), patches = ops::slice(b, positions, 1, 1, old);
  const ir::ValueId resampled = ops::batched_matmul(b, ops::reshape(b, matrix, {1, rows, old}), patches);
  const ir::ValueId joined = ops::concat(b, {ops::reshape(b, ops::copy(b, token), {images, width}),
                                             ops::reshape(b, resampled, {images, rows * width})});
  return ops::reshape(b, joined, {images, 1 + rows, width});
}

}  // namespace plimsoll::models
