#include "numerics/low_rank.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace plimsoll::numerics {
namespace {

using Vector = std::vector<double>;

constexpr double kResidual = 1e-9;
constexpr size_t kLanes = 8;

/// In an order that vectors can follow: lanes, then the lanes.
template <typename A, typename B>
double dot(const A* a, const B* b, size_t n) {
  std::array<double, kLanes> sums{};
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (size_t l = 0; l < kLanes; ++l)
      sums[l] += static_cast<double>(a[i + l]) * static_cast<double>(b[i + l]);
  for (; i < n; ++i) sums[0] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

template <typename A>
void add_scaled(double factor, const A* x, double* y, size_t n) {
  for (size_t i = 0; i < n; ++i) y[i] += factor * static_cast<double>(x[i]);
}

double norm(const Vector& x) { return std::sqrt(dot(x.data(), x.data(), x.size())); }

/// Eigenvalues and eigenvectors of a symmetric tridiagonal matrix by implicit QL. Source: Bowdler, Martin,
/// Reinsch & Wilkinson 1968, "The QR and QL algorithms for symmetric matrices".
class TridiagonalEigen {
 public:
  /// `diagonal` d, and e[i] beside d[i] and d[i + 1].
  TridiagonalEigen(Vector diagonal, Vector beside) : d_(std::move(diagonal)), e_(std::move(beside)) {
    const size_t n = d_.size();
    z_.assign(n * n, 0.0);
    for (size_t i = 0; i < n; ++i) z_[i * n + i] = 1;
    e_.resize(n, 0.0);
    for (size_t l = 0; l < n; ++l)
      for (int turns = 0; turns < kMostTurns; ++turns) {
        const size_t m = end_of_block(l);
        if (m == l) break;
        sweep(l, m);
      }
  }

  [[nodiscard]] const Vector& values() const { return d_; }
  Vector take_vectors() { return std::move(z_); }  ///< row i is the vector of value i

 private:
  static constexpr int kMostTurns = 200;

  /// The first place from l on behind which nothing is beside the diagonal.
  [[nodiscard]] size_t end_of_block(size_t l) const {
    size_t m = l;
    while (m + 1 < d_.size() && std::abs(e_[m]) > 1e-17 * (std::abs(d_[m]) + std::abs(d_[m + 1]))) ++m;
    return m;
  }

  /// One turn of QL on the block [l, m], shifted by what its upper corner says.
  void sweep(size_t l, size_t m) {
    double g = (d_[l + 1] - d_[l]) / (2 * e_[l]);
    g = d_[m] - d_[l] + e_[l] / (g + std::copysign(std::hypot(g, 1.0), g));
    double s = 1, c = 1, p = 0;
    for (size_t i = m; i-- > l;) {
      const double f = s * e_[i], b = c * e_[i], r = std::hypot(f, g);
      e_[i + 1] = r;
      if (r == 0) {
        d_[i + 1] -= p;
        e_[m] = 0;
        return;
      }
      s = f / r;
      c = g / r;
      g = d_[i + 1] - p;
      const double t = (d_[i] - g) * s + 2 * c * b;
      p = s * t;
      d_[i + 1] = g + p;
      g = c * t - b;
      rotate(i, s, c);
    }
    d_[l] -= p;
    e_[l] = g;
    e_[m] = 0;
  }

  void rotate(size_t i, double s, double c) {
    const size_t n = d_.size();
    double *low = z_.data() + i * n, *high = low + n;
    for (size_t k = 0; k < n; ++k) {
      const double v = high[k];
      high[k] = s * low[k] + c * v;
      low[k] = c * low[k] - s * v;
    }
  }

  Vector d_, e_, z_;
};

/// matrix = U B V^T so far, with B upper bidiagonal.
class Bidiagonal {
 public:
  Bidiagonal(std::span<const float> matrix, int64_t rows, int64_t columns)
      : matrix_(matrix), rows_(static_cast<size_t>(rows)), columns_(static_cast<size_t>(columns)) {
    Vector start = drawn(columns_);
    orthogonalise(start, {});
    v_.push_back(std::move(start));
  }

  void grow(size_t steps) {
    while (alpha_.size() < steps) step();
  }

  /// The triples by falling value; `last` is what the residual of each is.
  struct Triples {
    Vector values, residuals;
    std::vector<size_t> order;
    Vector vectors;  ///< rows: the right singular vectors of B
  };
  [[nodiscard]] Triples triples() const {
    const size_t k = alpha_.size();
    Vector d(k), e(k, 0.0);
    for (size_t i = 0; i < k; ++i) {
      d[i] = alpha_[i] * alpha_[i] + (i > 0 ? beta_[i - 1] * beta_[i - 1] : 0.0);
      if (i + 1 < k) e[i] = alpha_[i] * beta_[i];
    }
    Triples t;
    TridiagonalEigen eigen(std::move(d), std::move(e));
    const Vector& squares = eigen.values();
    t.vectors = eigen.take_vectors();
    t.order.resize(k);
    std::iota(t.order.begin(), t.order.end(), size_t{0});
    std::stable_sort(t.order.begin(), t.order.end(),
                     [&](size_t a, size_t b) { return squares[a] > squares[b]; });
    for (const size_t i : t.order) {
      t.values.push_back(std::sqrt(std::max(0.0, squares[i])));
      // What is beyond B is beta times the left vector's last component, alpha q / s.
      const double last =
          t.values.back() > 0 ? alpha_[k - 1] * t.vectors[i * k + k - 1] / t.values.back() : 0;
      t.residuals.push_back(std::abs(beta_[k - 1] * last));
    }
    return t;
  }

  /// sqrt(S) v^T and u sqrt(S) of the triple at place `i` of the order.
  void write(const Triples& t, size_t i, size_t rank, LowRankFactors& out) const {
    const size_t k = alpha_.size();
    const double* q = t.vectors.data() + t.order[i] * k;
    const double s = t.values[i], root = std::sqrt(s);
    Vector right(columns_, 0.0), left(rows_, 0.0);
    for (size_t j = 0; j < k; ++j) {
      add_scaled(q[j], v_[j].data(), right.data(), columns_);
      const double p = s > 0 ? (alpha_[j] * q[j] + (j + 1 < k ? beta_[j] * q[j + 1] : 0.0)) / s : 0.0;
      add_scaled(p, u_[j].data(), left.data(), rows_);
    }
    for (size_t c = 0; c < columns_; ++c) out.right[i * columns_ + c] = static_cast<float>(root * right[c]);
    for (size_t r = 0; r < rows_; ++r) out.left[r * rank + i] = static_cast<float>(root * left[r]);
  }

 private:
  /// Numbers without a pattern, the same each time: what a vector begins as that nothing else says.
  Vector drawn(size_t n) {
    Vector x(n);
    for (double& v : x) {
      seed_ = seed_ * 6364136223846793005U + 1442695040888963407U;
      v = static_cast<double>(seed_ >> 40) / 0x1p23 - 1.0;
    }
    return x;
  }

  /// x without its parts along `basis`, of length one; what is left of nothing is drawn anew. Returns the
  /// length that it had.
  double orthogonalise(Vector& x, const std::vector<Vector>& basis) {
    const auto clean = [&] {
      for (int twice = 0; twice < 2; ++twice)
        for (const Vector& b : basis)
          add_scaled(-dot(b.data(), x.data(), x.size()), b.data(), x.data(), x.size());
      return norm(x);
    };
    double length = clean();
    scale_ = std::max(scale_, length);
    const bool is_nothing = length <= 1e-13 * scale_;
    double left = length;
    for (int tries = 0; is_nothing && tries < 8 && left <= 1e-3; ++tries) {
      x = drawn(x.size());
      left = clean();
    }
    for (double& v : x) v = left > 0 ? v / left : 0.0;
    return is_nothing ? 0.0 : length;
  }

  void step() {
    const size_t j = alpha_.size();
    Vector u(rows_);
    for (size_t r = 0; r < rows_; ++r) u[r] = dot(matrix_.data() + r * columns_, v_[j].data(), columns_);
    if (j > 0) add_scaled(-beta_[j - 1], u_[j - 1].data(), u.data(), rows_);
    alpha_.push_back(orthogonalise(u, u_));
    u_.push_back(std::move(u));
    Vector v(columns_, 0.0);
    for (size_t r = 0; r < rows_; ++r)
      add_scaled(u_[j][r], matrix_.data() + r * columns_, v.data(), columns_);
    add_scaled(-alpha_[j], v_[j].data(), v.data(), columns_);
    const bool is_whole = v_.size() == columns_;
    beta_.push_back(is_whole ? 0.0 : orthogonalise(v, v_));
    v_.push_back(std::move(v));
  }

  std::span<const float> matrix_;
  size_t rows_, columns_;
  uint64_t seed_ = 1;
  double scale_ = 0;
  std::vector<Vector> u_, v_;
  Vector alpha_, beta_;
};

/// Householder's H = 1 - tau v v^T, one for each column so far; v is 1 at the column's own place.
class Reflections {
 public:
  explicit Reflections(size_t rows) : rows_(rows) {}

  void add(Vector x) {
    const size_t j = tau_.size();
    for (size_t k = 0; k < j; ++k) apply(k, x);
    const double tail = dot(x.data() + j + 1, x.data() + j + 1, rows_ - j - 1);
    double tau = 0;
    if (tail > 0) {
      const double beta = -std::copysign(std::sqrt(x[j] * x[j] + tail), x[j]);
      tau = (beta - x[j]) / beta;
      for (size_t i = j + 1; i < rows_; ++i) x[i] /= x[j] - beta;
    }
    tau_.push_back(tau);
    v_.push_back(std::move(x));
  }
  void apply_from_last(Vector& y) const {
    for (size_t k = tau_.size(); k-- > 0;) apply(k, y);
  }

 private:
  void apply(size_t k, Vector& y) const {
    const double* v = v_[k].data() + k + 1;
    const double factor = tau_[k] * (y[k] + dot(v, y.data() + k + 1, rows_ - k - 1));
    y[k] -= factor;
    add_scaled(-factor, v, y.data() + k + 1, rows_ - k - 1);
  }

  size_t rows_;
  Vector tau_;
  std::vector<Vector> v_;
};

/// Steps that are taken at most; what is random takes some hundreds.
int64_t most_steps(int64_t rows, int64_t columns, int64_t rank) {
  return std::min({rows, columns, 32 * rank + 512});
}

}  // namespace

int64_t largest_singular_bytes(int64_t rows, int64_t columns, int64_t rank) {
  const int64_t k = most_steps(rows, columns, rank);
  return 8 * k * (rows + columns + k);
}

LowRankFactors largest_singular(std::span<const float> matrix, int64_t rows, int64_t columns, int64_t rank) {
  PLIMSOLL_CHECK(rank >= 1 && rank <= std::min(rows, columns), "rank");
  const auto r = static_cast<size_t>(rank), most = static_cast<size_t>(most_steps(rows, columns, rank));
  Bidiagonal b(matrix, rows, columns);
  for (size_t k = std::min(most, 2 * r + 16);; k = std::min(most, k + k / 2)) {
    b.grow(k);
    const Bidiagonal::Triples t = b.triples();
    const bool converged = std::all_of(t.residuals.begin(), t.residuals.begin() + rank,
                                       [&](double residual) { return residual <= kResidual * t.values[0]; });
    if (!converged && k < most) continue;
    LowRankFactors out{std::vector<float>(static_cast<size_t>(rows) * r),
                       std::vector<float>(static_cast<size_t>(columns) * r)};
    for (size_t i = 0; i < r; ++i) b.write(t, i, r, out);
    return out;
  }
}

LowRankFactors first_of_qr(std::span<const float> matrix, int64_t rows, int64_t columns, int64_t rank) {
  PLIMSOLL_CHECK(rank >= 1 && rank <= std::min(rows, columns), "rank");
  const auto m = static_cast<size_t>(rows), n = static_cast<size_t>(columns), r = static_cast<size_t>(rank);
  Reflections reflections(m);
  for (size_t j = 0; j < r; ++j) {
    Vector x(m);
    for (size_t i = 0; i < m; ++i) x[i] = static_cast<double>(matrix[i * n + j]);
    reflections.add(std::move(x));
  }
  LowRankFactors out{std::vector<float>(m * r), std::vector<float>(n * r)};
  for (size_t j = 0; j < r; ++j) {
    Vector q(m, 0.0), row(n, 0.0);
    q[j] = 1;
    reflections.apply_from_last(q);
    for (size_t i = 0; i < m; ++i) out.left[i * r + j] = static_cast<float>(q[i]);
    for (size_t i = 0; i < m; ++i) add_scaled(q[i], matrix.data() + i * n, row.data(), n);
    for (size_t i = j; i < n; ++i) out.right[j * n + i] = static_cast<float>(row[i]);
  }
  return out;
}

}  // namespace plimsoll::numerics
