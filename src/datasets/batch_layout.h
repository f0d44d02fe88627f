// The byte layout of a batch: for each of its tensors what a sequence has of it. Whoever reads, loads
// and feeds batches knows this alone; a task says what the tensors mean.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace plimsoll::datasets {

/// What stands in a tensor where a sequence has nothing: behind its tokens, and in rows without a sequence.
enum class RowPadding : uint8_t {
  kValue,  ///< RowTensor::padding
  kIndex,  ///< each value's own index in the row
};

/// One tensor of a batch; its elements are of 4 bytes, i32 or f32.
struct RowTensor {
  bool by_token = true;  ///< a value a token, so many as the row is long; else `values` a sequence
  int64_t values = 1;
  RowPadding kind = RowPadding::kValue;
  uint32_t padding = 0;  ///< the bits of an element

  [[nodiscard]] int64_t elements(int64_t length) const { return by_token ? length : values; }
  [[nodiscard]] int64_t bytes(int64_t length) const { return 4 * elements(length); }
};

inline RowTensor token_row(int32_t padding, RowPadding kind = RowPadding::kValue) {
  return {.kind = kind, .padding = std::bit_cast<uint32_t>(padding)};
}
inline RowTensor int_row(int64_t values, int32_t padding) {
  return {.by_token = false, .values = values, .padding = std::bit_cast<uint32_t>(padding)};
}
inline RowTensor float_row(int64_t values, float padding) {
  return {.by_token = false, .values = values, .padding = std::bit_cast<uint32_t>(padding)};
}

using BatchLayout = std::vector<RowTensor>;

/// A sequence's part of each tensor, in the layout's order.
using SequenceRow = std::span<const std::span<std::byte>>;

template <class T>
std::span<T> row_as(std::span<std::byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

/// Fills a row's elements from `first` on with its padding.
inline void pad_row(const RowTensor& tensor, std::span<std::byte> row, size_t first) {
  const std::span<uint32_t> elements = row_as<uint32_t>(row);
  for (size_t i = first; i < elements.size(); ++i)
    elements[i] = tensor.kind == RowPadding::kIndex ? static_cast<uint32_t>(i) : tensor.padding;
}

}  // namespace plimsoll::datasets
