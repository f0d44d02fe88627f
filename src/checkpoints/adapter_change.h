// Applies an adapter to a tensor of its base model in blocks of rows: what merging adds up.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "io/model_weights.h"
#include "models/model.h"

namespace plimsoll::checkpoints {

class BaseTensor;

using Values = std::vector<float>;

/// Of m [rows, columns].
Values transpose(const Values& m, size_t rows, size_t columns);

/// Elements of a tensor of a file as f32.
Result<Values> read_values(const io::SafetensorsFile& file, const io::SafetensorsTensor& tensor,
                           int64_t first, int64_t count);
Result<Values> read_values(const io::SafetensorsFile& file, const io::SafetensorsTensor& tensor);

/// What one adapter does to one tensor of the base, by the tensors that are there.
struct AdapterChange {
  const io::SafetensorsFile* file = nullptr;
  const io::SafetensorsTensor *a = nullptr, *b = nullptr;  ///< W + scale B A
  const io::SafetensorsTensor* magnitude = nullptr;        ///< with them: DoRA's
  const io::SafetensorsTensor* whole = nullptr;            ///< in place of W
  const io::SafetensorsTensor* b_bias = nullptr;           ///< a bias + scale b
  const io::SafetensorsTensor* rows = nullptr;             ///< in place of W's rows of `tokens`
  std::vector<int64_t> tokens = {};                        ///< ascending
  double weight = 1;                                       ///< of this adapter among several
  double scale = 1;
  int64_t rank = 0;
  bool transposed = false;  ///< W is [in, out]; of a table [rows, width] likewise A runs along its rows
  models::Factors factors = models::Factors::kNone;  ///< W lost them first
  ir::DType loftq_dtype = ir::DType::kNf4;  ///< kLoftq: what it was rounded to, and in how many turns
  int64_t loftq_iterations = 1;
};

/// The same with its matrices in memory; the base's tensor is read once where norms or factors ask for it.
class LoadedChange {
 public:
  static Result<LoadedChange> load(const AdapterChange& change, const BaseTensor& base);

  /// Adds weight times the change to `rows` [count, columns] from row `first` on, of which `base` are the
  /// values before.
  [[nodiscard]] Status add_to(int64_t first, int64_t columns, const Values& base, Values& rows) const;
  /// What that adds to the product of the row `row` with `input`, computed apart, in double.
  [[nodiscard]] Result<double> product(int64_t row, const Values& base,
                                       const std::vector<double>& input) const;

 private:
  /// B A, of the adapter or of what the base lost.
  struct Pair {
    Values a, b;
  };
  [[nodiscard]] Status load_norms(const BaseTensor& base);
  [[nodiscard]] Status load_factors(const BaseTensor& base);
  void round(Values w, int64_t outs, int64_t in, const BaseTensor& base);
  void add_low_rank(const Pair& pair, double factor, int64_t first, size_t width, Values& rows) const;
  [[nodiscard]] double low_rank_product(const Pair& pair, size_t row, const std::vector<double>& input) const;
  /// magnitude / norm of the element at (row, column).
  [[nodiscard]] double gain(size_t row, size_t column) const {
    return gains_[change_.transposed ? column : row];
  }
  [[nodiscard]] Result<Values> replaced(int64_t first, int64_t columns, const Values& base) const;

  AdapterChange change_;
  Pair pair_, lost_;
  Values rounded_;             ///< kLoftq: all of W as it was rounded, in place of W
  std::vector<double> gains_;  ///< empty: no magnitudes
};

}  // namespace plimsoll::checkpoints
