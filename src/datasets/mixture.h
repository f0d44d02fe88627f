// Several sources in one run, by weight: which source and which of its sequences stands at a position, as a
// function of the position alone. A resume seeks in O(1), and ranks agree without talking.
//
//   positions:  | block 0: P of them | block 1 | …
//
// In each block source s has exactly c_s places, spread by a permutation of the block's own.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace plimsoll::datasets {

struct MixtureSource {
  int64_t num_sequences = 0;  ///< positive
  double weight = 1;          ///< positive; only ratios matter
  std::string name = {};      ///< a file of it, for errors
};

/// A place of the run.
struct MixturePlace {
  int32_t source = 0;
  int64_t index = 0;  ///< of the source's sequence
  int64_t epoch = 0;  ///< of the source: how often it has been gone through before
};

class Mixture {
 public:
  /// With `shuffle`, sources are spread at random and each goes through its sequences in an order that is new
  /// each epoch; without, both in order. Memory: 8 bytes a position of the block, 512 KiB at most.
  /// Errors: kInvalidArgument that names the source for a weight that is not positive or finite, or less than
  /// one sequence in 65,536.
  static Result<Mixture> create(std::span<const MixtureSource> sources, uint64_t seed, bool shuffle);

  /// Which sequence stands at `position` (from 0 over the whole run).
  [[nodiscard]] MixturePlace at(int64_t position) const;
  [[nodiscard]] int64_t block_size() const { return static_cast<int64_t>(pattern_.size()); }
  /// Sequences of each source in a block.
  [[nodiscard]] std::span<const int64_t> block_counts() const { return counts_; }
  /// Positions after which the source that lasts longest has been gone through once: an epoch of the mixture,
  /// in which nothing is left out. O(block).
  [[nodiscard]] int64_t positions_for_all() const;

 private:
  struct Slot {
    int32_t source = 0;
    int32_t rank = 0;  ///< among the source's places in the block
  };
  Mixture(std::vector<MixtureSource> sources, std::vector<int64_t> counts, uint64_t seed, bool shuffle);
  std::vector<MixtureSource> sources_;
  std::vector<int64_t> counts_;
  std::vector<Slot> pattern_;
  uint64_t seed_ = 0;
  bool shuffle_ = true;
};

}  // namespace plimsoll::datasets
