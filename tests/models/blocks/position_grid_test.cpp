// Positions of a grid of patches, resampled as torch's bicubic interpolation does.
#include "models/blocks/position_grid.h"

#include <gtest/gtest.h>

#include <cmath>

namespace plimsoll::models {
namespace {

TEST(PositionGrid, SameSizeChangesNothing) {
  const std::vector<float> matrix = resampling_matrix(3, 3, 3);
  for (size_t i = 0; i < 9; ++i)
    for (size_t j = 0; j < 9; ++j) EXPECT_FLOAT_EQ(matrix[i * 9 + j], i == j ? 1.0F : 0.0F);
}

TEST(PositionGrid, RowsAddUpToOne) {
  const std::vector<float> matrix = resampling_matrix(5, 3, 8);
  ASSERT_EQ(matrix.size(), 24U * 25U);
  for (size_t i = 0; i < 24; ++i) {
    double sum = 0;
    for (size_t j = 0; j < 25; ++j) sum += static_cast<double>(matrix[i * 25 + j]);
    EXPECT_NEAR(sum, 1.0, 1e-6);
  }
}

/// Of torch 2: interpolate(arange(16).reshape(1, 1, 4, 4) ** 2 / 10, size=(2, 3), mode="bicubic").
TEST(PositionGrid, IsTorchsBicubic) {
  const std::vector<float> matrix = resampling_matrix(4, 2, 3);
  const double expected[] = {0.40014468, 1.05000000, 2.11744792, 11.12092014, 14.17500000, 17.64667245};
  for (size_t i = 0; i < 6; ++i) {
    double value = 0;
    for (size_t j = 0; j < 16; ++j)
      value += static_cast<double>(matrix[i * 16 + j]) * static_cast<double>(j * j) / 10;
    EXPECT_NEAR(value, expected[i], 1e-5);
  }
}

}  // namespace
}  // namespace plimsoll::models
