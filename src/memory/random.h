// Reproducible bits for hashing and for shuffling orders.
#pragma once

#include <cstdint>

namespace plimsoll::memory {

/// The finaliser of SplitMix64: every bit of the input reaches every bit of the output.
/// Source: Steele, Lea & Flood 2014, doi:10.1145/2660193.2660195.
constexpr uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// A stream of numbers in [0, 1).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(mix(seed)) {}
  double next() { return static_cast<double>(mix(state_++) >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

}  // namespace plimsoll::memory
