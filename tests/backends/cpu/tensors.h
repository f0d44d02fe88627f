// Tensors of tests, by the bits of their elements.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "ir/shape.h"

namespace plimsoll::cpu::fixtures {

using ir::DType;
using ir::Shape;

/// A dense tensor by the bits of its elements, of 32, 16 or 8 bits each. Rank 0 stands for an absent operand.
struct Tensor {
  ir::TensorType type;
  std::vector<uint32_t> bits;
  std::vector<std::byte> storage =
      {};  ///< of a block type: codes and scales as they lie, in the place of bits

  [[nodiscard]] float f32(size_t i) const { return std::bit_cast<float>(bits[i]); }
  [[nodiscard]] double value(size_t i) const {
    switch (type.dtype) {
      case DType::kI32:
        return static_cast<double>(std::bit_cast<int32_t>(bits[i]));
      case DType::kU8:
        return static_cast<double>(bits[i]);
      case DType::kBf16:
        return static_cast<double>(std::bit_cast<float>(bits[i] << 16));
      case DType::kF16:
        return half(bits[i]);
      default:
        return static_cast<double>(f32(i));
    }
  }

 private:
  static double half(uint32_t code) {
    const int exponent = static_cast<int>(code >> 10 & 31U);
    const auto mantissa = static_cast<double>(code & 1023U);
    const double size = exponent == 31  ? (mantissa > 0 ? std::nan("") : INFINITY)
                        : exponent == 0 ? std::ldexp(mantissa, -24)
                                        : std::ldexp(mantissa + 1024, exponent - 25);
    return code >> 15 ? -size : size;
  }
};

inline size_t size_of(const Shape& shape) { return static_cast<size_t>(shape.num_elements()); }

inline Tensor floats(const Shape& shape, const std::vector<float>& values) {
  Tensor t{{DType::kF32, shape}, {}};
  for (const float v : values) t.bits.push_back(std::bit_cast<uint32_t>(v));
  return t;
}
/// The same values as bf16, or as f16 (within its normal range), to nearest even.
inline Tensor as(DType dtype, Tensor t) {
  t.type.dtype = dtype;
  for (uint32_t& bits : t.bits) {
    const bool brief = dtype == DType::kBf16;
    const int cut = brief ? 16 : 13;
    const uint32_t magnitude = bits & 0x7FFFFFFFU;
    const uint32_t rounded = (magnitude + (1U << (cut - 1)) - 1 + (magnitude >> cut & 1U)) >> cut;
    const uint32_t code = brief ? rounded : rounded <= 112U << 10 ? 0 : rounded - (112U << 10);
    bits = bits >> 31 << 15 | code;
  }
  return t;
}
inline Tensor bf16(const Tensor& t) { return as(DType::kBf16, t); }
/// The most that rounding to bf16, or to f16, moves a value by, relative to it.
inline constexpr double kBf16Step = 0x1p-8, kF16Step = 0x1p-11;
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

}  // namespace plimsoll::cpu::fixtures
