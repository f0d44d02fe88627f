// The definition of Adafactor's rules: of matrices, of filters and of anything else, with a first moment and
// without.
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

/// The same of filters: a matrix [height, width] for each output and input.
std::vector<double> filters_update(TensorUpdate& u, const Part& part) {
  const double* field = u.group;
  const FilterExtents f(u.tensor.shape);
  const auto height = static_cast<size_t>(f.height), width = static_cast<size_t>(f.width),
             in = static_cast<size_t>(f.in);
  std::vector<double> update(part.rows * part.cols);
  for (size_t i = 0; i < part.rows * in; ++i) {
    const size_t filter = part.row + i / in, c = i % in;
    const auto element = [&](size_t h, size_t w) { return (h * width + w) * in + c; };
    const auto row = [&](size_t h) -> double& { return u.states[0][(filter * height + h) * in + c]; };
    const auto col = [&](size_t w) -> double& { return u.states[1][(filter * width + w) * in + c]; };
    const auto gradient = [&](size_t h, size_t w) { return u.gradient[filter * part.cols + element(h, w)]; };
    const auto take_in = [&](double& moment, double squares, size_t count) {
      const double mean = squares / static_cast<double>(count) + field[kAdafactorEpsilon1];
      moment = moment * field[kAdafactorBeta2] + field[kAdafactorOneMinusBeta2] * mean;
    };
    double mean = 0;
    for (size_t h = 0; h < height; ++h) {
      double squares = 0;
      for (size_t w = 0; w < width; ++w) squares += gradient(h, w) * gradient(h, w);
      take_in(row(h), squares, width);
      mean += row(h) / static_cast<double>(height);
    }
    for (size_t w = 0; w < width; ++w) {
      double squares = 0;
      for (size_t h = 0; h < height; ++h) squares += gradient(h, w) * gradient(h, w);
      take_in(col(w), squares, height);
    }
    for (size_t h = 0; h < height; ++h)
      for (size_t w = 0; w < width; ++w)
        update[i / in * part.cols + element(h, w)] =
            gradient(h, w) / std::sqrt(row(h) / mean) / std::sqrt(col(w));
  }
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

/// What second moments are kept of.
enum class Kept : uint8_t { kElements, kRowsAndColumns, kFilters };

std::vector<double> update_of(Kept kept, TensorUpdate& u, const Part& part) {
  return kept == Kept::kFilters          ? filters_update(u, part)
         : kept == Kept::kRowsAndColumns ? factored_update(u, part)
                                         : plain_update(u, part);
}

template <Kept kKept, bool kMoment>
void apply_adafactor(TensorUpdate& u) {
  const double* field = u.group;
  const auto rows = static_cast<size_t>(u.tensor.shape.dim(0));
  Part part{0, 0, 0, u.param.size() / rows};
  for (const int64_t part_rows : u.tensor.parts) {
    part.rows = static_cast<size_t>(part_rows);
    double* p = u.param.data() + part.row * part.cols;
    std::vector<double> update = update_of(kKept, u, part);
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

ir::Shape filter_rows(const RuledTensor& tensor) {
  const FilterExtents f(tensor.shape);
  return {tensor.shape.dim(0), f.height, f.in};
}
ir::Shape filter_cols(const RuledTensor& tensor) {
  const FilterExtents f(tensor.shape);
  return {tensor.shape.dim(0), f.width, f.in};
}

template <Kept kKept, bool kMoment>
TensorRule rule(std::string_view name, std::string_view summary) {
  TensorRule rule{.name = name, .summary = summary, .states = {}, .num_fields = kAdafactorFields};
  if (kKept == Kept::kFilters)
    rule.states = {{"row", filter_rows, ir::DType::kF32}, {"col", filter_cols, ir::DType::kF32}};
  else if (kKept == Kept::kRowsAndColumns)
    rule.states = {{"row", rows_of, ir::DType::kF32}, {"col", cols_of, ir::DType::kF32}};
  else
    rule.states = {{"v", nullptr, ir::DType::kF32}};
  if (kMoment) rule.states.push_back({"m"});
  rule.flops = [](const RuledTensor& t) { return 15.0 * static_cast<double>(t.shape.num_elements()); };
  rule.apply = apply_adafactor<kKept, kMoment>;
  return rule;
}

}  // namespace

std::vector<TensorRule> adafactor_rules() {
  constexpr Kept kMatrix = Kept::kRowsAndColumns, kWhole = Kept::kElements, kFilters = Kept::kFilters;
  return {rule<kMatrix, false>("adafactor", "Adafactor of a matrix"),
          rule<kMatrix, true>("adafactor_moment", "Adafactor of a matrix, with a first moment"),
          rule<kWhole, false>("adafactor_vector", "Adafactor with a whole second moment"),
          rule<kWhole, true>("adafactor_vector_moment", "Adafactor with a whole second and a first moment"),
          rule<kFilters, false>("adafactor_filters", "Adafactor of a convolution's filters"),
          rule<kFilters, true>("adafactor_filters_moment",
                               "Adafactor of a convolution's filters, with a first moment")};
}

FilterExtents::FilterExtents(const ir::Shape& shape) : in(shape.num_elements() / shape.dim(0)) {
  if (shape.rank() != 4) return;
  height = shape.dim(1), width = shape.dim(2), in = shape.dim(3);
}

}  // namespace plimsoll::ops
