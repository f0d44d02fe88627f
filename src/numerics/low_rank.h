// Low-rank approximation of a matrix: its largest singular triples, and the first of Q R.
// Double precision inside, one thread, no chance: the result is bit-identical for the same matrix.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace plimsoll::numerics {

/// left [rows, rank] times right [rank, columns].
struct LowRankFactors {
  std::vector<float> left, right;
};

/// Of the singular value decomposition U S V^T of `matrix` [rows, columns] the triples with the largest S:
/// left = U sqrt(S), right = sqrt(S) V^T, which is the nearest matrix of that rank (Eckart & Young 1936).
/// Golub & Kahan's bidiagonalisation (1965) with full reorthogonalisation, continued until the residual of
/// each triple is below 1e-9 of the largest value, or for 32 rank + 512 steps; the bidiagonal's by implicit
/// QL. 1 <= rank <= min(rows, columns) (checked).
/// Memory: beside matrix and result at most largest_singular_bytes().
LowRankFactors largest_singular(std::span<const float> matrix, int64_t rows, int64_t columns, int64_t rank);

int64_t largest_singular_bytes(int64_t rows, int64_t columns, int64_t rank);

/// left = the first `rank` columns of Q, right = the first rows of R, of matrix = Q R by Householder's
/// reflections with LAPACK's signs. As above.
LowRankFactors first_of_qr(std::span<const float> matrix, int64_t rows, int64_t columns, int64_t rank);

}  // namespace plimsoll::numerics
