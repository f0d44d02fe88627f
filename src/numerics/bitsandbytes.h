// The quantised weights of bitsandbytes: codes, scales and their rounding as its CPU backend has them, so
// that files of either read alike. Differences to the nearest value are its own (docs/formats.md says which).
//
//   4 bits   blocks of 64 values of the flattened matrix; the first value of a byte in its upper half
//   nested   the blocks' largest magnitudes less their mean, in turn as codes of the signed dynamic map, in
//            blocks of 256
//   int8     rows; a value is code * (the row's largest magnitude / 127)
//
// Source: bitsandbytes 0.50.2, behaviour recorded by tests/interop/record_quantized.py.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace plimsoll::numerics::bitsandbytes {

inline constexpr int64_t kBlock = 64;
inline constexpr int64_t kNestedBlock = 256;

enum class FourBit : uint8_t { kNf4, kFp4 };

/// The 16 values by code.
const std::array<float, 16>& values_of(FourBit type);

/// Scales that are quantised themselves.
struct Nested {
  float offset =
      0;  ///< the mean: summed in double in order, rounded once (PyTorch's order depends on its threads)
  std::vector<uint8_t> codes;
  std::vector<float> absmax;  ///< one for 256 codes
};
/// A code is that of the nearest of 65,536 even steps of [-1, 1], as bitsandbytes' table on the CPU has it;
/// codes of a block of zeros are 0.
Nested quantize_absmax(std::span<const float> absmax);
/// The same with a given offset.
Nested quantize_absmax(std::span<const float> absmax, float offset);
/// map[code] * absmax + offset, each rounded to f32.
std::vector<float> dequantize_absmax(const Nested& nested);

/// One row, rounded to fp16 first: round(x * ((1 / absmax) * 127)), half to even; a row of zeros has codes 0.
/// Returns the row's absmax (bitsandbytes' SCB). The values must be finite in fp16.
float quantize_int8_row(std::span<const float> x, std::span<int8_t> codes);

}  // namespace plimsoll::numerics::bitsandbytes
