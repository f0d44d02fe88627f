#include "checkpoints/adapter_change.h"

#include <algorithm>
#include <cmath>

#include "checkpoints/adapter_start.h"
#include "checkpoints/base_tensor.h"
#include "checkpoints/quantized_start.h"
#include "io/tensor_convert.h"
#include "ops/block_values.h"

namespace plimsoll::checkpoints {

Values transpose(const Values& m, size_t rows, size_t columns) {
  Values t(m.size());
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c) t[c * rows + r] = m[r * columns + c];
  return t;
}

Result<Values> read_values(const io::SafetensorsFile& file, const io::SafetensorsTensor& tensor,
                           int64_t first, int64_t count) {
  const io::FloatFormat format = *io::float_format(tensor.dtype);
  std::vector<std::byte> raw(static_cast<size_t>(count * io::element_bytes(format)));
  PLIMSOLL_TRY(file.read(tensor, first * io::element_bytes(format), raw));
  Values values(static_cast<size_t>(count));
  io::convert_to_f32(format, raw.data(), values.data(), count);
  return values;
}
Result<Values> read_values(const io::SafetensorsFile& file, const io::SafetensorsTensor& tensor) {
  return read_values(file, tensor, 0, tensor.num_elements());
}

Result<LoadedChange> LoadedChange::load(const AdapterChange& change, const BaseTensor& base) {
  LoadedChange loaded;
  loaded.change_ = change;
  if (change.b_bias != nullptr) {
    PLIMSOLL_ASSIGN(loaded.pair_.b, read_values(*change.file, *change.b_bias));
  }
  if (change.a == nullptr) return loaded;
  PLIMSOLL_ASSIGN(loaded.pair_.a, read_values(*change.file, *change.a));
  PLIMSOLL_ASSIGN(loaded.pair_.b, read_values(*change.file, *change.b));
  if (change.magnitude != nullptr) PLIMSOLL_TRY(loaded.load_norms(base));
  if (change.factors != models::Factors::kNone) PLIMSOLL_TRY(loaded.load_factors(base));
  return loaded;
}

Status LoadedChange::load_norms(const BaseTensor& base) {
  PLIMSOLL_ASSIGN(const Values magnitude, read_values(*change_.file, *change_.magnitude));
  const int64_t rows = base.shape()[0], columns = base.num_columns();
  gains_.assign(magnitude.size(), 0.0);
  for (int64_t r = 0; r < rows; ++r) {
    PLIMSOLL_ASSIGN(Values row, base.read(r * columns, columns));
    add_low_rank(pair_, change_.scale, r, row.size(), row);
    for (size_t c = 0; c < row.size(); ++c)
      gains_[change_.transposed ? c : static_cast<size_t>(r)] +=
          static_cast<double>(row[c]) * static_cast<double>(row[c]);
  }
  for (size_t o = 0; o < gains_.size(); ++o)
    gains_[o] = static_cast<double>(magnitude[o]) / std::sqrt(gains_[o]);
  return Ok{};
}

/// W as the adapter began beside it.
void LoadedChange::round(Values w, int64_t outs, int64_t in, const BaseTensor& base) {
  const ir::TensorType type{change_.loftq_dtype, {base.shape()[0], base.num_columns()}};
  rounded_.resize(w.size());
  const QuantizedStart start =
      start_quantized(std::move(w), {.type = type,
                                     .transposed = change_.transposed,
                                     .shape = {outs, in, change_.rank, change_.scale},
                                     .factors = change_.factors,
                                     .iterations = change_.loftq_iterations});
  ops::dequantize(type, start.storage.data(), 0, std::span(rounded_));
}

Status LoadedChange::load_factors(const BaseTensor& base) {
  PLIMSOLL_ASSIGN(Values w, base.read());
  const size_t in = pair_.a.size() / static_cast<size_t>(change_.rank), outs = w.size() / in;
  if (change_.factors == models::Factors::kLoftq) {
    round(std::move(w), static_cast<int64_t>(outs), static_cast<int64_t>(in), base);
    return Ok{};
  }
  if (change_.transposed) w = transpose(w, in, outs);
  numerics::LowRankFactors f =
      low_rank_factors(w, {static_cast<int64_t>(outs), static_cast<int64_t>(in), change_.rank, change_.scale},
                       change_.factors);
  lost_ = {std::move(f.right), std::move(f.left)};
  return Ok{};
}

void LoadedChange::add_low_rank(const Pair& pair, double factor, int64_t first, size_t width,
                                Values& rows) const {
  const auto rank = static_cast<size_t>(change_.rank);
  const size_t in = pair.a.size() / rank;
  for (size_t row = 0; row < rows.size() / width; ++row)
    for (size_t k = 0; k < rank; ++k) {
      const size_t at = static_cast<size_t>(first) + row;
      const float left = change_.transposed ? pair.a[k * in + at] : pair.b[at * rank + k];
      const auto times = static_cast<float>(factor * static_cast<double>(left));
      float* const to = rows.data() + row * width;
      for (size_t i = 0; i < width; ++i)
        to[i] += times * (change_.transposed ? pair.b[i * rank + k] : pair.a[k * in + i]);
    }
}

/// The rows as the adapter has them whole: all of them, or those of its tokens.
Result<Values> LoadedChange::replaced(int64_t first, int64_t columns, const Values& base) const {
  if (change_.whole != nullptr)
    return read_values(*change_.file, *change_.whole, first * columns, static_cast<int64_t>(base.size()));
  Values rows = base;
  const int64_t count = static_cast<int64_t>(base.size()) / columns;
  for (size_t i = 0; i < change_.tokens.size(); ++i) {
    const int64_t row = change_.tokens[i] - first;
    if (row < 0 || row >= count) continue;
    PLIMSOLL_ASSIGN(const Values saved,
                    read_values(*change_.file, *change_.rows, static_cast<int64_t>(i) * columns, columns));
    std::copy(saved.begin(), saved.end(), rows.begin() + row * columns);
  }
  return rows;
}

Status LoadedChange::add_to(int64_t first, int64_t columns, const Values& base, Values& rows) const {
  const auto width = static_cast<size_t>(columns);
  const auto weight = static_cast<float>(change_.weight);
  if (change_.b_bias != nullptr) {
    const auto factor = static_cast<float>(change_.weight * change_.scale);
    for (size_t i = 0; i < rows.size(); ++i)
      rows[i] += factor * pair_.b[static_cast<size_t>(first) * width + i];
    return Ok{};
  }
  if (change_.a != nullptr && gains_.empty()) {
    add_low_rank(pair_, change_.weight * change_.scale, first, width, rows);
    if (!lost_.a.empty()) add_low_rank(lost_, -change_.weight * change_.scale, first, width, rows);
    for (size_t i = 0; !rounded_.empty() && i < rows.size(); ++i)
      rows[i] += weight * (rounded_[static_cast<size_t>(first) * width + i] - base[i]);
    return Ok{};
  }
  Values saved = base;
  if (change_.a != nullptr) {
    add_low_rank(pair_, change_.scale, first, width, saved);
    for (size_t i = 0; i < saved.size(); ++i)
      saved[i] = static_cast<float>(static_cast<double>(saved[i]) *
                                    gain(static_cast<size_t>(first) + i / width, i % width));
  } else {
    PLIMSOLL_ASSIGN(saved, replaced(first, columns, base));
  }
  for (size_t i = 0; i < rows.size(); ++i)
    rows[i] = weight == 1.0F && rows[i] == base[i] ? saved[i] : rows[i] + weight * (saved[i] - base[i]);
  return Ok{};
}

double LoadedChange::low_rank_product(const Pair& pair, size_t row, const std::vector<double>& input) const {
  const auto rank = static_cast<size_t>(change_.rank);
  const size_t in = pair.a.size() / rank;
  double sum = 0;
  for (size_t k = 0; k < rank; ++k) {
    double inner = 0;
    for (size_t i = 0; i < input.size(); ++i)
      inner += input[i] * static_cast<double>(change_.transposed ? pair.b[i * rank + k] : pair.a[k * in + i]);
    sum += inner * static_cast<double>(change_.transposed ? pair.a[k * in + row] : pair.b[row * rank + k]);
  }
  return sum;
}

Result<double> LoadedChange::product(int64_t row, const Values& base,
                                     const std::vector<double>& input) const {
  const auto at = static_cast<size_t>(row);
  const auto columns = static_cast<int64_t>(base.size());
  if (change_.b_bias != nullptr) {
    double sum = 0;
    for (size_t i = 0; i < base.size(); ++i)
      sum += static_cast<double>(pair_.b[at * base.size() + i]) * input[i];
    return change_.weight * change_.scale * sum;
  }
  double sum = 0;
  if (change_.a != nullptr && gains_.empty()) {
    for (size_t i = 0; !rounded_.empty() && i < base.size(); ++i)
      sum += (static_cast<double>(rounded_[at * base.size() + i]) - static_cast<double>(base[i])) * input[i];
    return change_.weight *
           (sum + change_.scale * (low_rank_product(pair_, at, input) -
                                   (lost_.a.empty() ? 0.0 : low_rank_product(lost_, at, input))));
  }
  std::vector<double> gained = input;
  if (change_.a != nullptr) {
    for (size_t i = 0; i < gained.size(); ++i) gained[i] *= gain(at, i);
    for (size_t i = 0; i < gained.size(); ++i) sum += static_cast<double>(base[i]) * (gained[i] - input[i]);
    return change_.weight * (sum + change_.scale * low_rank_product(pair_, at, gained));
  }
  PLIMSOLL_ASSIGN(const Values saved, replaced(row, columns, base));
  for (size_t i = 0; i < saved.size(); ++i)
    sum += (static_cast<double>(saved[i]) - static_cast<double>(base[i])) * input[i];
  return change_.weight * sum;
}

}  // namespace plimsoll::checkpoints
