// The definition of Adafactor's rules: of matrices and of anything else, with a first moment and without.
#include <algorithm>
#include <cmath>

#include "ops/tensor_rules.h"

namespace plimsoll::ops {
namespace {

double rms(const double* values, size_t n) {
  double squares = 0;
  for (size_t i = 0; i < n; ++i) squares += values[i] * values[i];
  return std::sqrt(squares / static_cast<double>(n));
}

/// One of the checkpoint's tensors: rows [row, row + rows) of the storage.
struct Part {
  size_t index, row, rows, cols;
};

/// 1 / sqrt of the second moment of each element, times the gradient.
std::vector<double> factored_update(TensorUpdate& u, const Part& part) {
  const double* field = u.group;
  double* rows = u.states[0].data() + part.row;
  double* cols = u.states[1].data() + part.index * part.cols;
  const double* g = u.gradient.data() + part.row * part.cols;
  std::vector<double> col_sums(part.cols), update(part.rows * part.cols);
  double row_mean = 0;
  for (size_t r = 0; r < part.rows; ++r) {
    double sum = 0;
    for (size_t c = 0; c < part.cols; ++c) {
      const double square = g[r * part.cols + c] * g[r * part.cols + c] + field[kAdafactorEpsilon1];
      sum += square;
      col_sums[c] += square;
    }
    rows[r] = rows[r] * field[kAdafactorBeta2] +
              field[kAdafactorOneMinusBeta2] * sum / static_cast<double>(part.cols);
    row_mean += rows[r] / static_cast<double>(part.rows);
  }
  for (size_t c = 0; c < part.cols; ++c)
    cols[c] = cols[c] * field[kAdafactorBeta2] +
              field[kAdafactorOneMinusBeta2] * col_sums[c] / static_cast<double>(part.rows);
  for (size_t i = 0; i < update.size(); ++i)
    update[i] = g[i] / std::sqrt(rows[i / part.cols] / row_mean) / std::sqrt(cols[i % part.cols]);
  return update;
}

std::vector<double> plain_update(TensorUpdate& u, const Part& part) {
  const double* field = u.group;
  const size_t first = part.row * part.cols;
  std::vector<double> update(part.rows * part.cols);
  for (size_t i = 0; i < update.size(); ++i) {
    const double g = u.gradient[first + i];
    double& v = u.states[0][first + i];
    v = v * field[kAdafactorBeta2] + field[kAdafactorOneMinusBeta2] * (g * g + field[kAdafactorEpsilon1]);
    update[i] = g / std::sqrt(v);
  }
  return update;
}

template <bool kFactored, bool kMoment>
void apply_adafactor(TensorUpdate& u) {
  const double* field = u.group;
  const auto rows = static_cast<size_t>(u.tensor.shape.dim(0));
  Part part{0, 0, 0, u.param.size() / rows};
  for (const int64_t part_rows : u.tensor.parts) {
    part.rows = static_cast<size_t>(part_rows);
    double* p = u.param.data() + part.row * part.cols;
    std::vector<double> update = kFactored ? factored_update(u, part) : plain_update(u, part);
    double rate = field[kAdafactorRate];
    if (field[kAdafactorScale] != 0) rate *= std::max(field[kAdafactorEpsilon2], rms(p, update.size()));
    const double clip = std::max(1.0, rms(update.data(), update.size()) / field[kAdafactorThreshold]);
    for (size_t i = 0; i < update.size(); ++i) {
      double step = update[i] / clip * rate;
      if (kMoment) {
        double& m = u.states.back()[part.row * part.cols + i];
        step = m = m * field[kAdafactorBeta1] + field[kAdafactorOneMinusBeta1] * step;
      }
      p[i] = p[i] * (1 - field[kAdafactorDecay] * rate) - step;
    }
    part.row += part.rows;
    ++part.index;
  }
}

ir::Shape rows_of(const RuledTensor& tensor) { return {tensor.shape.dim(0)}; }
ir::Shape cols_of(const RuledTensor& tensor) {
  return {static_cast<int64_t>(tensor.parts.size()), tensor.shape.num_elements() / tensor.shape.dim(0)};
}

template <bool kFactored, bool kMoment>
TensorRule rule(std::string_view name, std::string_view summary) {
  TensorRule rule{.name = name, .summary = summary, .states = {}, .num_fields = kAdafactorFields};
  if (kFactored)
    rule.states = {{"row", rows_of, ir::DType::kF32}, {"col", cols_of, ir::DType::kF32}};
  else
    rule.states = {{"v", nullptr, ir::DType::kF32}};
  if (kMoment) rule.states.push_back({"m"});
  rule.flops = [](const RuledTensor& t) { return 15.0 * static_cast<double>(t.shape.num_elements()); };
  rule.apply = apply_adafactor<kFactored, kMoment>;
  return rule;
}

}  // namespace

std::vector<TensorRule> adafactor_rules() {
  return {rule<true, false>("adafactor", "Adafactor of a matrix"),
          rule<true, true>("adafactor_moment", "Adafactor of a matrix, with a first moment"),
          rule<false, false>("adafactor_vector", "Adafactor with a whole second moment"),
          rule<false, true>("adafactor_vector_moment", "Adafactor with a whole second and a first moment")};
}

}  // namespace plimsoll::ops
