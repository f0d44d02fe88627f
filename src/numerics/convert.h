// Arrays of f32 to another format and back. Vectors of the best instruction set at hand; the results are
// exact, hence bit-identical on every one and for every number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "numerics/formats.h"

namespace plimsoll::numerics {

enum class Rounding : uint8_t {
  kNearestEven,  ///< ties to the even code; NF4: to the nearest value, ties to the lower
  kStochastic,   ///< to one of the two neighbours, with the probabilities that keep the mean
};

/// What a random word depends on besides its element: Philox-4x32-10 (Salmon et al. 2011) with key = seed and
/// counter = {element / 4 (lower half), element / 4 (upper half), stream (lower half), stream (upper half)};
/// element e takes word e % 4. With stream = step | key of the op << 32 these are the words of random ops.
struct RandomKey {
  uint64_t seed = 0;
  uint64_t stream = 0;
  uint64_t first_element = 0;  ///< number of the array's first element, where it is a piece of something
};

struct EncodeOptions {
  Rounding rounding = Rounding::kNearestEven;
  /// Beyond the range: the largest finite number, infinities too; otherwise infinity, or NaN where the format
  /// has none (E4M3, E8M0). E2M1, NF4 and int8 always saturate.
  bool saturate = false;
  RandomKey random = {};  ///< for kStochastic
  int num_threads = 1;    ///< at most; arrays of less than a mebibyte stay on the caller's
};

/// Bytes of n codes: as many as stored_bits say, the last byte filled up.
int64_t encoded_bytes(Format format, int64_t n);

/// Rounds n numbers. fp32 copies; tf32 codes are f32; 4-bit codes go two in a byte, the even index in the
/// lower half, the half byte after an odd last one is 0; int8 is two's complement within -127 ... 127.
/// NaN keeps its sign and, from 16 bits on, its upper bits, and becomes quiet; E2M1 makes +6 of it, NF4 and
/// int8 0 (they have none). E8M0 takes the magnitude; half way between two powers goes up; less than 2^-127
/// is 2^-127. Probabilities of stochastic rounding are exact to 2^-32; NF4 is never rounded so (checked).
/// Shapes: codes holds encoded_bytes(format, x.size()) (checked); it may be x's own memory for fp32 and tf32.
void encode(Format format, std::span<const float> x, std::span<std::byte> codes,
            const EncodeOptions& options = {});

/// The numbers that codes stand for, exact; a NaN stays one.
/// Shapes: codes holds encoded_bytes(format, x.size()) (checked).
void decode(Format format, std::span<const std::byte> codes, std::span<float> x, int num_threads = 1);

}  // namespace plimsoll::numerics
