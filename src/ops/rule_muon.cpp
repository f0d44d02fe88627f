// The definition of muon: momentum, Newton-Schulz on each matrix, the step.
#include <algorithm>
#include <cmath>

#include "ops/tensor_rules.h"

namespace plimsoll::ops {
namespace {

/// x [rows, cols] becomes nearly orthogonal.
void orthogonalise(std::vector<double>& x, size_t rows, size_t cols, int64_t steps) {
  const size_t shorter = std::min(rows, cols), longer = std::max(rows, cols);
  // Element i of the shorter axis, j of the longer.
  const auto at_of = [&](size_t i, size_t j) { return rows <= cols ? i * cols + j : j * cols + i; };
  double squares = 0;
  for (const double v : x) squares += v * v;
  const double norm = std::max(std::sqrt(squares), kMuonEpsilon);
  for (double& v : x) v /= norm;
  for (int64_t step = 0; step < steps; ++step) {
    std::vector<double> gram(shorter * shorter), both(shorter * shorter), next(x.size());
    for (size_t i = 0; i < shorter; ++i)
      for (size_t k = 0; k < shorter; ++k)
        for (size_t j = 0; j < longer; ++j) gram[i * shorter + k] += x[at_of(i, j)] * x[at_of(k, j)];
    for (size_t i = 0; i < shorter; ++i)
      for (size_t k = 0; k < shorter; ++k) {
        double sum = 0;
        for (size_t l = 0; l < shorter; ++l) sum += gram[i * shorter + l] * gram[l * shorter + k];
        both[i * shorter + k] = kMuonCoefficients[1] * gram[i * shorter + k] + kMuonCoefficients[2] * sum;
      }
    for (size_t i = 0; i < shorter; ++i)
      for (size_t j = 0; j < longer; ++j) {
        double sum = kMuonCoefficients[0] * x[at_of(i, j)];
        for (size_t k = 0; k < shorter; ++k) sum += both[i * shorter + k] * x[at_of(k, j)];
        next[at_of(i, j)] = sum;
      }
    x = next;
  }
}

void apply_muon(TensorUpdate& u) {
  const double* field = u.group;
  const double momentum = field[kMuonMomentum];
  const size_t cols = u.param.size() / static_cast<size_t>(u.tensor.shape.dim(0));
  size_t first = 0;
  for (const int64_t part_rows : u.tensor.parts) {
    const auto rows = static_cast<size_t>(part_rows);
    std::vector<double> update(rows * cols);
    for (size_t i = 0; i < update.size(); ++i) {
      const double g = u.gradient[first + i];
      double& m = u.states[0][first + i];
      m += (g - m) * field[kMuonOneMinusMomentum];
      update[i] = field[kMuonNesterov] != 0 ? g + (m - g) * momentum : m;
    }
    orthogonalise(update, rows, cols, u.tensor.steps);
    const double rate = field[kMuonRate] *
                        muon_adjustment(part_rows, static_cast<int64_t>(cols), field[kMuonMatchesRms] != 0);
    for (size_t i = 0; i < update.size(); ++i)
      u.param[first + i] = u.param[first + i] * field[kMuonDecay] - rate * update[i];
    first += update.size();
  }
}

double flops(const RuledTensor& tensor) {
  const auto cols = static_cast<double>(tensor.shape.num_elements() / tensor.shape.dim(0));
  double sum = 10.0 * static_cast<double>(tensor.shape.num_elements());
  for (const int64_t part_rows : tensor.parts) {
    const auto rows = static_cast<double>(part_rows);
    const double shorter = std::min(rows, cols), longer = std::max(rows, cols);
    sum += static_cast<double>(tensor.steps) *
           (4 * shorter * shorter * longer + 2 * shorter * shorter * shorter);
  }
  return sum;
}

}  // namespace

double muon_adjustment(int64_t rows, int64_t cols, bool matches_rms) {
  const auto m = static_cast<double>(rows), n = static_cast<double>(cols);
  return matches_rms ? 0.2 * std::sqrt(std::max(m, n)) : std::sqrt(std::max(1.0, m / n));
}

TensorRule muon_rule() {
  return {.name = "muon",
          .summary = "orthogonalised momentum",
          .states = {{"momentum"}},
          .num_fields = kMuonFields,
          .flops = flops,
          .apply = apply_muon,
          .iterates = true};
}

}  // namespace plimsoll::ops
