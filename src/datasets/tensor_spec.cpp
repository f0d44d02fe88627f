// Copies and padding of examples, whichever axis their length is.
#include "datasets/tensor_spec.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace plimsoll::datasets {
namespace {

/// An example as [outer, positions, inner]; without a length axis all its elements are positions.
struct Blocks {
  int64_t outer = 1, positions = 1, inner = 1;
};

/// The positions follow from the bytes that an example takes.
Blocks blocks_of(const TensorSpec& tensor, int64_t bytes) {
  Blocks blocks;
  for (int axis = 0; tensor.length_axis && axis < tensor.shape.rank(); ++axis)
    if (axis != *tensor.length_axis)
      (axis < *tensor.length_axis ? blocks.outer : blocks.inner) *= tensor.shape.dim(axis);
  blocks.positions = bytes / (tensor.element_bytes() * blocks.outer * blocks.inner);
  return blocks;
}

/// Pads the positions from `first` on.
template <class T>
void pad_as(const TensorSpec& tensor, const Blocks& blocks, int64_t first, T* data) {
  for (int64_t o = 0; o < blocks.outer; ++o) {
    T* const block = data + o * blocks.positions * blocks.inner;
    if (tensor.padding == Padding::kValue)
      std::fill(block + first * blocks.inner, block + blocks.positions * blocks.inner,
                static_cast<T>(tensor.padding_bits));
    else
      for (int64_t p = first; p < blocks.positions; ++p)
        std::fill_n(block + p * blocks.inner, blocks.inner, static_cast<T>(p));
  }
}

void pad_behind(const TensorSpec& tensor, const Blocks& blocks, int64_t first, std::byte* data) {
  switch (tensor.element_bytes()) {
    case 1:
      return pad_as(tensor, blocks, first, reinterpret_cast<uint8_t*>(data));
    case 2:
      return pad_as(tensor, blocks, first, reinterpret_cast<uint16_t*>(data));
    case 4:
      return pad_as(tensor, blocks, first, reinterpret_cast<uint32_t*>(data));
    case 8:
      return pad_as(tensor, blocks, first, reinterpret_cast<uint64_t*>(data));
    default:
      PLIMSOLL_FAIL("a batch's tensor with elements of no whole bytes");
  }
}

}  // namespace

ir::Shape TensorSpec::example_shape(int64_t length) const {
  ir::Shape result = shape;
  if (length_axis) result.set_dim(*length_axis, length);
  return result;
}

int64_t TensorSpec::example_bytes(int64_t length) const {
  return example_shape(length).num_elements() * element_bytes();
}

ir::TensorType TensorSpec::batch_type(int64_t batch, int64_t length) const {
  if (of_batch) return {dtype, shape};
  const ir::Shape example = example_shape(length);
  PLIMSOLL_CHECK(example.rank() < ir::Shape::kMaxRank, "no axis is left for the batch");
  std::array<int64_t, ir::Shape::kMaxRank> dims = {batch};
  std::ranges::copy(example.dims(), dims.begin() + 1);
  return {dtype, ir::Shape(std::span(dims).first(static_cast<size_t>(example.rank()) + 1))};
}

void copy_example(const TensorSpec& tensor, std::span<const std::byte> from, int64_t from_length,
                  std::span<std::byte> to, int64_t to_length) {
  PLIMSOLL_CHECK(static_cast<int64_t>(from.size()) == tensor.example_bytes(from_length) &&
                     static_cast<int64_t>(to.size()) == tensor.example_bytes(to_length),
                 "an example of another size");
  const Blocks blocks = blocks_of(tensor, static_cast<int64_t>(to.size()));
  const int64_t from_block = static_cast<int64_t>(from.size()) / blocks.outer,
                to_block = static_cast<int64_t>(to.size()) / blocks.outer;
  PLIMSOLL_CHECK(from_block <= to_block, "an example longer than its room");
  for (int64_t o = 0; o < blocks.outer; ++o)
    std::copy_n(from.data() + o * from_block, from_block, to.data() + o * to_block);
  if (from_block < to_block)
    pad_behind(tensor, blocks, from_block / (blocks.inner * tensor.element_bytes()), to.data());
}

void pad_example(const TensorSpec& tensor, std::span<std::byte> to) {
  pad_behind(tensor, blocks_of(tensor, static_cast<int64_t>(to.size())), 0, to.data());
}

}  // namespace plimsoll::datasets
