// The dynamic maps of 8 bits: 256 values of [-1, 1], or of [0, 1], whose spacing follows their magnitude.
// Decade i of seven, [10^(i-7), 10^(i-6)), has 2^i values a sign in the signed map, 2^(i+1) in the unsigned
// one: the centres of so many equal pieces of its upper nine tenths. Beside them stand 0 and 1, without a -1.
// Source: Dettmers 2016, arXiv:1511.04561; Dettmers et al. 2022, arXiv:2110.02861; the same values, to the
// bit, as bitsandbytes.functional.create_dynamic_map.
#pragma once

#include <array>
#include <cstdint>

namespace plimsoll::numerics {

/// A map, and what finds the nearest value of a magnitude without a search: for each value that the upper
/// half of an f32 can have, the number of the map's magnitudes (its values from 0 on) that end below, and in
/// the bits from 8 on the lower half of the bound to the next; all ones where none lies in between. No two
/// bounds share an upper half.
struct DynamicMap {
  static constexpr int32_t kFirstHalf = (127 - 23) << 7;  ///< of 2^-23, below every bound
  static constexpr int32_t kHalves = (127 << 7) - kFirstHalf + 1;

  /// The magnitudes as pieces of equal spacing, which tell the code without a table of all bounds: 0, the
  /// seven decades and 1. Within one, x * slope + offset, at most `last`, rounds to the nearest magnitude,
  /// unless it lies within kMargin of a half, where the rounding of the map's own values decides.
  struct Pieces {
    static constexpr int32_t kLeast = (127 - 23) << 23;  ///< of 2^-23, as which smaller ones count
    static constexpr float kMargin = 0x1p-11F;
    alignas(64) std::array<int32_t, 32> of_octave = {};  ///< by exponent modulo 32: the piece of its least
    alignas(64) std::array<float, 16> end = {};          ///< the last x of a piece
    alignas(64) std::array<float, 16> slope = {}, offset = {}, last = {};
  };

  alignas(64) std::array<float, 256> values = {};  ///< ascending, by code
  alignas(64) std::array<int32_t, kHalves> halves = {};
  uint8_t zero = 0;  ///< the code of 0; magnitude k has the code zero + k
  bool is_signed = false;
  Pieces pieces = {};

  /// The code of the nearest value. |x| is 1 at most, to rounding; halfway it is the smaller magnitude.
  [[nodiscard]] uint8_t code(float x) const;
};

const DynamicMap& signed_dynamic_map();
const DynamicMap& unsigned_dynamic_map();

}  // namespace plimsoll::numerics
