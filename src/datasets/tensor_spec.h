// Describes the tensors of a batch: for each the name, the element type, and the shape that one example has
// of it. Sources, loader and feeder need no more; a task says what the tensors mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "ir/shape.h"

namespace plimsoll::datasets {

/// What stands in a tensor where an example has nothing: behind its length, and in rows without an example.
enum class Padding : uint8_t {
  kValue,  ///< TensorSpec::padding_bits
  kIndex,  ///< each position's own index along the length axis
};

/// One tensor of a batch. Its values of the examples lie one behind the other, dense.
struct TensorSpec {
  std::string name;                   ///< the programs read the state "batch.<name>"
  ir::DType dtype = ir::DType::kI32;  ///< with elements of whole bytes
  ir::Shape shape = {};               ///< of one example; rank 0: one value
  bool of_batch = false;              ///< `shape` is that of a whole micro-batch, whatever its size
  /// The axis of `shape` that is as long as the batch's examples, whatever `shape` says of it; absent: all
  /// examples have the one shape.
  std::optional<int> length_axis = {};
  Padding padding = Padding::kValue;
  uint64_t padding_bits = 0;  ///< of an element, see element_bits

  [[nodiscard]] int64_t element_bytes() const { return ir::bits(dtype) / 8; }
  /// Of one example of that length.
  [[nodiscard]] ir::Shape example_shape(int64_t length) const;
  [[nodiscard]] int64_t example_bytes(int64_t length) const;
  /// Of so many of them: [batch, …].
  [[nodiscard]] ir::TensorType batch_type(int64_t batch, int64_t length) const;
  bool operator==(const TensorSpec&) const = default;
};

/// The bits of an element of that value.
template <class T>
uint64_t element_bits(T value) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

/// A value a token.
inline TensorSpec token_tensor(std::string name, int32_t padding, Padding kind = Padding::kValue) {
  return {.name = std::move(name),
          .shape = {1},
          .length_axis = 0,
          .padding = kind,
          .padding_bits = element_bits(padding)};
}

/// An example's part of each tensor, in the order of the tensors.
using ExampleRow = std::span<const std::span<std::byte>>;

template <class T>
std::span<T> row_as(std::span<std::byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

/// Copies an example's part of a tensor to where it has room for `to_length`, which is no less than its own
/// length, and pads the rest.
void copy_example(const TensorSpec& tensor, std::span<const std::byte> from, int64_t from_length,
                  std::span<std::byte> to, int64_t to_length);
/// Fills an example's part of a tensor with padding.
void pad_example(const TensorSpec& tensor, std::span<std::byte> to);

}  // namespace plimsoll::datasets
