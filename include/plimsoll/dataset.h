// Data sets of one's own: anything with size() and operator[](index), which gives a Row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/array.h"
#include "plimsoll/result.h"

namespace plimsoll {
inline namespace PLIMSOLL_INLINE_NAMESPACE {

/// One example: arrays by name, without the batch's axis.
using Row = std::vector<std::pair<std::string, Tensor>>;

/// A data set, whatever its type. Copies share it. With workers its operator[] is called by several threads
/// at once.
class Rows {
 public:
  template <class Dataset>
  explicit Rows(Dataset dataset) {
    auto held = std::make_shared<Dataset>(std::move(dataset));
    size_ = [held] { return static_cast<int64_t>(held->size()); };
    row_ = [held](int64_t index) { return Row((*held)[static_cast<size_t>(index)]); };
  }
  [[nodiscard]] int64_t size() const { return size_(); }
  [[nodiscard]] Row at(int64_t index) const { return row_(index); }

 private:
  std::function<int64_t()> size_;
  std::function<Row(int64_t)> row_;
};

template <class Dataset>
Rows rows(Dataset dataset) {
  return Rows(std::move(dataset));
}

namespace detail {

/// One array of a batch from the rows' arrays. `index` of each row is for the message.
inline Result<std::shared_ptr<const Tensor>> stack(const std::vector<Row>& rows, size_t place,
                                                   const std::vector<int64_t>& index) {
  const auto& [name, first] = rows.front()[place];
  std::vector<std::byte> bytes;
  bytes.reserve(first.bytes().size() * rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].size() != rows.front().size() || rows[i][place].first != name)
      return Error(ErrorKind::bad_data,
                   "row " + std::to_string(index[i]) + " has other arrays than row " +
                       std::to_string(index.front()) + ", which has " + name,
                   "all rows have the same names in the same order");
    const Tensor& tensor = rows[i][place].second;
    if (tensor.dtype() != first.dtype() || tensor.shape() != first.shape() ||
        tensor.bytes().size() != first.bytes().size())
      return Error(ErrorKind::bad_data,
                   name + ": row " + std::to_string(index[i]) + " differs in shape or type from row " +
                       std::to_string(index.front()),
                   "a plan's shapes are fixed: cut or pad the rows");
    bytes.insert(bytes.end(), tensor.bytes().begin(), tensor.bytes().end());
  }
  Shape shape = first.shape();
  shape.insert(shape.begin(), static_cast<int64_t>(rows.size()));
  return std::make_shared<const Tensor>(first.dtype(), std::move(shape), std::move(bytes));
}

inline Result<Batch> read_batch(const Rows& source, const std::vector<int64_t>& index) {
  std::vector<Row> rows;
  for (const int64_t i : index) rows.push_back(source.at(i));
  Batch batch;
  for (size_t place = 0; place < rows.front().size(); ++place) {
    Result<std::shared_ptr<const Tensor>> tensor = stack(rows, place, index);
    if (!tensor) return tensor.error();
    batch.add(rows.front()[place].first, *std::move(tensor));
  }
  return batch;
}

}  // namespace detail
}  // namespace PLIMSOLL_INLINE_NAMESPACE
}  // namespace plimsoll
