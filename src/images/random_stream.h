// The random numbers of one augmentation of one picture, from Philox by what they are for.
#pragma once

#include <cstdint>

#include "numerics/philox.h"

namespace plimsoll::images {

/// Numbers by (seed, index, sub-index, place): the same whatever else has been drawn.
class RandomStream {
 public:
  /// `index` is the sample or the step, `round` the epoch, `place` the augmentation's place in the list.
  RandomStream(uint64_t seed, int64_t index, int64_t round, int64_t place)
      : key_{static_cast<uint32_t>(seed) ^ kPurpose, static_cast<uint32_t>(seed >> 32)},
        counter_{0, static_cast<uint32_t>(place) ^ (static_cast<uint32_t>(index >> 32) << 8),
                 static_cast<uint32_t>(index), static_cast<uint32_t>(round)} {}

  /// 32 random bits.
  uint32_t bits() {
    if (used_ == words_.size()) {
      words_ = numerics::philox(counter_, key_);
      ++counter_[0];
      used_ = 0;
    }
    return words_[used_++];
  }
  /// In [0, 1).
  double uniform() { return static_cast<double>(bits()) * 0x1p-32; }
  double uniform(double from, double to) { return from + (to - from) * uniform(); }
  /// In 0 ... count - 1. Precondition: 0 < count < 2^31.
  int64_t below(int64_t count) {
    return static_cast<int64_t>((uint64_t{bits()} * static_cast<uint64_t>(count)) >> 32);
  }
  bool happens(double probability) { return uniform() < probability; }

 private:
  static constexpr uint32_t kPurpose = 0x696D6167;  // "imag": dropout of the same seed draws others
  numerics::PhiloxKey key_;
  numerics::PhiloxCounter counter_;
  numerics::PhiloxCounter words_ = {};
  size_t used_ = words_.size();
};

}  // namespace plimsoll::images
