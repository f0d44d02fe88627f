// The order of an epoch as a function: a keyed permutation of [0, n) with random access, so that a resume
// seeks in O(1) and every rank computes the same order without storing it.
#pragma once

#include <cstdint>

namespace plimsoll::datasets {

/// A pseudo-random permutation of [0, size): a Feistel network over the next even power of two, walked along
/// its cycle until the value is in range (fewer than 4 rounds of walking on average). Determinism: a pure
/// function of (size, seed, epoch), the same on every machine. Source: Black & Rogaway 2002, "Ciphers with
/// arbitrary finite domains".
class Permutation {
 public:
  Permutation(int64_t size, uint64_t seed, uint64_t epoch);
  /// `index` in [0, size).
  [[nodiscard]] int64_t at(int64_t index) const;

 private:
  [[nodiscard]] uint64_t encrypt(uint64_t value) const;
  static constexpr int kRounds = 6;
  uint64_t size_ = 0;
  int half_bits_ = 1;
  uint64_t keys_[kRounds] = {};
};

/// Which sequence stands at which position of the run. Positions count sequences from 0 over all epochs: row
/// r of step s (from 1) is (s - 1) * global_batch_size + r. Batches run on across epochs.
class BatchOrder {
 public:
  /// `num_sequences` is positive.
  BatchOrder(int64_t num_sequences, uint64_t seed, bool shuffle)
      : num_sequences_(num_sequences), seed_(seed), shuffle_(shuffle) {}
  [[nodiscard]] int64_t at(int64_t position) const;
  [[nodiscard]] int64_t epoch_of(int64_t position) const { return position / num_sequences_; }

 private:
  int64_t num_sequences_ = 1;
  uint64_t seed_ = 0;
  bool shuffle_ = true;
};

/// ceil(sequences * epochs / global batch); epochs may be a fraction.
int64_t steps_for_epochs(int64_t num_sequences, double epochs, int64_t global_batch_size);

}  // namespace plimsoll::datasets
