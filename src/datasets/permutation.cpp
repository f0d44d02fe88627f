// A keyed Feistel network over 2 * half_bits bits, walked along its cycle into [0, size).
#include "datasets/permutation.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace plimsoll::datasets {
namespace {

/// The finaliser of splitmix64: every output bit depends on every input bit.
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

Permutation::Permutation(int64_t size, uint64_t seed, uint64_t epoch) : size_(static_cast<uint64_t>(size)) {
  PLIMSOLL_CHECK(size > 0 && size <= int64_t{1} << 62, "a permutation of nothing");
  while (half_bits_ < 31 && (uint64_t{1} << (2 * half_bits_)) < size_) ++half_bits_;
  for (uint64_t round = 0; round < kRounds; ++round) keys_[round] = mix(mix(mix(seed) ^ epoch) ^ round);
}

uint64_t Permutation::encrypt(uint64_t value) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_;
  uint64_t right = value & mask;
  for (const uint64_t key : keys_) {
    const uint64_t next = left ^ (mix(right ^ key) & mask);
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

int64_t Permutation::at(int64_t index) const {
  PLIMSOLL_CHECK(index >= 0 && static_cast<uint64_t>(index) < size_, "a position outside of the permutation");
  // The network permutes at most 4 * size values, so the walk comes back into range after 4 rounds on
  // average.
  uint64_t value = encrypt(static_cast<uint64_t>(index));
  while (value >= size_) value = encrypt(value);
  return static_cast<int64_t>(value);
}

int64_t BatchOrder::at(int64_t position) const {
  const int64_t index = position % num_sequences_;
  if (!shuffle_) return index;
  return Permutation(num_sequences_, seed_, static_cast<uint64_t>(epoch_of(position))).at(index);
}

int64_t steps_for_epochs(int64_t num_sequences, double epochs, int64_t global_batch_size) {
  const double whole = std::floor(epochs);
  // Whole epochs are counted in integers: their product with the sequences may exceed what a double holds
  // exactly.
  const double fraction = std::ceil(static_cast<double>(num_sequences) * (epochs - whole));
  int64_t total = 0;
  if (whole >= 0x1p62 || __builtin_mul_overflow(num_sequences, static_cast<int64_t>(whole), &total))
    total = int64_t{1} << 62;
  total = std::min(total, int64_t{1} << 62) + static_cast<int64_t>(fraction);
  return std::max<int64_t>(1, (total - 1) / global_batch_size + 1);
}

}  // namespace plimsoll::datasets
