// Tensors of tests, by the bits of their elements.
#pragma once

#include <bit>
#include <cstdint>
#include <random>
#include <vector>

#include "ir/shape.h"

namespace plimsoll::cpu::testing {

using ir::DType;
using ir::Shape;

/// A dense tensor of 32-bit elements, by their bits. Rank 0 stands for an absent operand.
struct Tensor {
  ir::TensorType type;
  std::vector<uint32_t> bits;

  [[nodiscard]] float f32(size_t i) const { return std::bit_cast<float>(bits[i]); }
  [[nodiscard]] double value(size_t i) const {
    return type.dtype == DType::kI32 ? static_cast<double>(std::bit_cast<int32_t>(bits[i]))
                                     : static_cast<double>(f32(i));
  }
};

inline size_t size_of(const Shape& shape) { return static_cast<size_t>(shape.num_elements()); }

inline Tensor floats(const Shape& shape, const std::vector<float>& values) {
  Tensor t{{DType::kF32, shape}, {}};
  for (const float v : values) t.bits.push_back(std::bit_cast<uint32_t>(v));
  return t;
}
inline Tensor ints(const Shape& shape, const std::vector<int32_t>& values) {
  Tensor t{{DType::kI32, shape}, {}};
  for (const int32_t v : values) t.bits.push_back(std::bit_cast<uint32_t>(v));
  return t;
}
inline Tensor normal(const Shape& shape, unsigned seed, float size = 1.0f) {
  std::mt19937 random(seed);
  std::normal_distribution<float> draw(0.0f, size);
  std::vector<float> values(size_of(shape));
  for (float& v : values) v = draw(random);
  return floats(shape, values);
}
/// Integers of [0, end).
inline Tensor indices(const Shape& shape, int32_t end, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int32_t> draw(0, end - 1);
  std::vector<int32_t> values(size_of(shape));
  for (int32_t& v : values) v = draw(random);
  return ints(shape, values);
}
inline Tensor scalar(float value) { return floats(Shape{1}, {value}); }
inline Tensor absent() { return {}; }

}  // namespace plimsoll::cpu::testing
