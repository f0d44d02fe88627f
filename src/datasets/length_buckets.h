// Lengths of buckets: counted lengths of sequences, and the few lengths with the least padding.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace plimsoll::datasets {

inline constexpr int64_t kMostBucketLengths = 16;  ///< a program each

/// How often sequences have which length, up to a longest. Memory: 8 bytes a length, 512 KiB at most: beyond
/// 65,536 several lengths share a count, as the longest of them.
class LengthCounts {
 public:
  explicit LengthCounts(int64_t longest);
  /// `length` from 1 to the longest.
  void add(int64_t length, int64_t count = 1);
  /// Another's counts, which has as long a longest, scaled so that they are about `sequences`; none where it
  /// has none.
  void add_scaled(const LengthCounts& other, int64_t sequences);
  [[nodiscard]] int64_t longest() const { return longest_; }
  [[nodiscard]] int64_t num_sequences() const { return num_sequences_; }
  [[nodiscard]] int64_t num_tokens() const { return num_tokens_; }
  /// Sequences of at most `length` tokens.
  [[nodiscard]] int64_t at_most(int64_t length) const;

 private:
  int64_t longest_ = 1, step_ = 1;
  int64_t num_sequences_ = 0, num_tokens_ = 0;
  std::vector<int64_t> counts_;
};

/// At most `count` ascending lengths, the last the longest, with which the fewest positions are padding:
/// exact over the multiples of 16 (of more from 8,192 tokens on), by dynamic programming. A length that saves
/// nothing is left out. Determinism: a pure function of the counts.
std::vector<int64_t> choose_lengths(const LengthCounts& counts, int64_t count);

/// `count` lengths at even distances, multiples of 16 but for the last: where the data is not known.
std::vector<int64_t> even_lengths(int64_t longest, int64_t count);

/// Positions, padding included, of sequences that are each as long as the least of `lengths` that holds them.
int64_t padded_positions(const LengthCounts& counts, std::span<const int64_t> lengths);

}  // namespace plimsoll::datasets
