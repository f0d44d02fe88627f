// Thin factors of matrices: of what is of that rank, of what has known values, of what is random.
#include "numerics/low_rank.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace plimsoll::numerics {
namespace {

std::vector<float> random_matrix(int64_t rows, int64_t columns, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> draw;
  std::vector<float> m(static_cast<size_t>(rows * columns));
  for (float& v : m) v = draw(random);
  return m;
}

/// left times right.
std::vector<double> product(const LowRankFactors& f, int64_t rows, int64_t columns, int64_t rank) {
  std::vector<double> m(static_cast<size_t>(rows * columns));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t k = 0; k < rank; ++k)
        m[static_cast<size_t>(r * columns + c)] +=
            static_cast<double>(f.left[static_cast<size_t>(r * rank + k)]) *
            static_cast<double>(f.right[static_cast<size_t>(k * columns + c)]);
  return m;
}

double distance(const std::vector<float>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::pow(static_cast<double>(a[i]) - b[i], 2);
  return std::sqrt(sum);
}

TEST(LargestSingular, AMatrixOfThatRankIsWhole) {
  const int64_t rows = 13, columns = 9;
  for (const int64_t rank : {1, 3}) {
    const LowRankFactors f{random_matrix(rows, rank, 1), random_matrix(rank, columns, 2)};
    const std::vector<double> exact = product(f, rows, columns, rank);
    const std::vector<float> m(exact.begin(), exact.end());
    EXPECT_LT(distance(m, product(largest_singular(m, rows, columns, rank), rows, columns, rank)), 1e-5);
  }
}

TEST(LargestSingular, OfADiagonalTheLargest) {
  const std::vector<float> m = {2, 0, 0, 0, -7, 0, 0, 0, 5};
  const std::vector<double> two = product(largest_singular(m, 3, 3, 2), 3, 3, 2);
  const std::vector<double> expected = {0, 0, 0, 0, -7, 0, 0, 0, 5};
  for (size_t i = 0; i < 9; ++i) EXPECT_NEAR(two[i], expected[i], 1e-5) << i;
}

/// Nothing, and values that are all the same, which have no largest.
TEST(LargestSingular, DegenerateMatrices) {
  const std::vector<float> none(12, 0.0F);
  EXPECT_EQ(distance(none, product(largest_singular(none, 4, 3, 2), 4, 3, 2)), 0);
  std::vector<float> identity(25, 0.0F);
  for (size_t i = 0; i < 5; ++i) identity[i * 6] = 1;
  EXPECT_NEAR(distance(identity, product(largest_singular(identity, 5, 5, 2), 5, 5, 2)), std::sqrt(3.0),
              1e-6);
}

/// The vectors are orthogonal, and a triple is one: m v = s u.
TEST(LargestSingular, TriplesOfARandomMatrix) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{60, 90}, {90, 60}}) {
    const int64_t rank = 7;
    const std::vector<float> m = random_matrix(rows, columns, 3);
    const LowRankFactors f = largest_singular(m, rows, columns, rank);
    double previous = 1e30;
    for (int64_t k = 0; k < rank; ++k) {
      double s = 0;
      for (int64_t c = 0; c < columns; ++c) s += std::pow(f.right[static_cast<size_t>(k * columns + c)], 2);
      EXPECT_LE(s, previous * (1 + 1e-6));
      previous = s;
      for (int64_t r = 0; r < rows; ++r) {
        double y = 0;
        for (int64_t c = 0; c < columns; ++c)
          y += static_cast<double>(m[static_cast<size_t>(r * columns + c)]) *
               static_cast<double>(f.right[static_cast<size_t>(k * columns + c)]);
        EXPECT_NEAR(y, s * static_cast<double>(f.left[static_cast<size_t>(r * rank + k)]), 2e-5 * s) << r;
      }
    }
  }
}

TEST(FirstOfQr, IsTheMatrixWhereItIsWholeWithLapacksSigns) {
  const int64_t rows = 6, columns = 4;
  const std::vector<float> m = random_matrix(rows, columns, 4);
  const LowRankFactors f = first_of_qr(m, rows, columns, columns);
  EXPECT_LT(distance(m, product(f, rows, columns, columns)), 1e-5);
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < j; ++i) EXPECT_EQ(f.right[static_cast<size_t>(j * columns + i)], 0);
  // The first reflection takes the column to minus its sign times its length.
  EXPECT_LT(f.right[0] * m[0], 0);
  const LowRankFactors two = first_of_qr(m, rows, columns, 2);
  for (int64_t c = 0; c < 2 * columns; ++c)
    EXPECT_NEAR(two.right[static_cast<size_t>(c)], f.right[static_cast<size_t>(c)], 1e-6);
}

}  // namespace
}  // namespace plimsoll::numerics
