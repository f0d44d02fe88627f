// Best-fit decreasing over the pieces of one window.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace plimsoll::datasets::packing {

/// A set of numbers in [0, size]: bits, and over them bits of words that are not zero, level on level. A step
/// up or down a level covers a factor of 64.
class NumberSet {
 public:
  explicit NumberSet(int64_t largest);
  void insert(int64_t number);
  void erase(int64_t number);
  /// The smallest member that is at least `number`; -1 where there is none.
  [[nodiscard]] int64_t at_least(int64_t number) const;

 private:
  std::vector<std::vector<uint64_t>> levels_;
};

/// Packs pieces into bins of one capacity: longest first (of equal ones the earlier), each into the bin with
/// the least room that is enough (of equal ones the one that came to this room last), a new one where there
/// is none. Time: a sort, and a few words of the set a piece. At most 11/9 of the least number of bins, and a
/// bin more. Source: Johnson 1973, "Near-optimal bin packing algorithms".
class BestFit {
 public:
  explicit BestFit(int64_t capacity);
  /// lengths[i] in [1, capacity] goes into bin bin_of[i]; bins are numbered in the order of their first
  /// pieces. Returns how many there are. Determinism: a pure function of the lengths. Memory is kept for the
  /// next call.
  int32_t pack(std::span<const int32_t> lengths, std::span<int32_t> bin_of);

 private:
  void place(int32_t piece, int32_t length, std::span<int32_t> bin_of);
  void push(int64_t room, int32_t bin);
  int32_t pop(int64_t room);
  int64_t capacity_;
  NumberSet rooms_;            ///< for which room there is a bin
  std::vector<int32_t> head_;  ///< by room: the bin that came to it last, or -1
  std::vector<int32_t> next_;  ///< by bin: the one before
  std::vector<uint64_t> order_;
  std::vector<int32_t> number_;
};

}  // namespace plimsoll::datasets::packing
