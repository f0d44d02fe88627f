// Short words by scanning their pairs. Long ones by blocks of positions: the first block with a pair of the
// least rank is gone through from left to right, and all its pairs of that rank merge in one go. That is the
// order of one merge at a time, because a merged token is longer than what it was made of: no merge makes
// another pair of its own rank. A pair of a lesser rank, which it may make, ends the sweep. So a long run of
// one letter costs a few passes through nearby memory, and a merge that is alone in its block one look
// through it and the way up the tree.
#include "tokenizers/merges.h"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace plimsoll::tokenizers {
namespace {

constexpr size_t kShortWord = 64;  // symbols
constexpr size_t kKeptSymbols = size_t{1} << 18;
constexpr uint64_t kNone = MergeTable::kNone;
constexpr int32_t kNoRank = INT32_MAX;

/// rank << 32 | position: the least is the next merge.
uint64_t candidate(uint64_t pair, size_t position) {
  return pair == kNone ? kNone : (pair >> 32) << 32 | static_cast<uint64_t>(position);
}

/// Four at once, so that a comparison need not wait for the one before. `size` is a multiple of four.
uint64_t least_of(const uint64_t* candidates, size_t size) {
  uint64_t least0 = kNone, least1 = kNone, least2 = kNone, least3 = kNone;
  for (size_t i = 0; i < size; i += 4) {
    least0 = std::min(least0, candidates[i]);
    least1 = std::min(least1, candidates[i + 1]);
    least2 = std::min(least2, candidates[i + 2]);
    least3 = std::min(least3, candidates[i + 3]);
  }
  return std::min(std::min(least0, least1), std::min(least2, least3));
}

// Symbols stay where they are; what has been merged away is skipped by `next` and is no candidate.
void merge_short(const MergeTable& merges, std::vector<int32_t>& symbols) {
  const size_t size = symbols.size();
  int32_t* const symbol = symbols.data();
  uint64_t candidates[kShortWord];
  int32_t merged[kShortWord];
  uint8_t next[kShortWord];
  uint8_t previous[kShortWord];
  const auto pair_up = [&](size_t left, size_t right) {
    const uint64_t pair = right < size ? merges.find(symbol[left], symbol[right]) : kNone;
    candidates[left] = candidate(pair, left);
    merged[left] = static_cast<int32_t>(pair & 0xFFFFFFFF);
  };
  for (size_t i = 0; i < size; ++i) {
    pair_up(i, i + 1);
    next[i] = static_cast<uint8_t>(i + 1);
    previous[i] = static_cast<uint8_t>(i - 1);
  }
  const size_t padded = (size + 3) / 4 * 4;
  for (size_t i = size; i < padded; ++i) candidates[i] = kNone;
  while (true) {
    const uint64_t least = least_of(candidates, padded);
    if (least == kNone) break;
    const size_t left = static_cast<size_t>(least & 0xFFFFFFFF);
    const size_t right = next[left];
    symbol[left] = merged[left];
    candidates[right] = kNone;
    next[left] = next[right];
    if (next[right] < size) previous[next[right]] = static_cast<uint8_t>(left);
    pair_up(left, next[left]);
    if (left > 0) pair_up(previous[left], left);
  }
  size_t kept = 0;
  for (size_t i = 0; i < size; i = next[i]) symbol[kept++] = symbol[i];
  symbols.resize(kept);
}

/// The ranks of the pairs by position, in blocks, and which block has the least: a binary tree over the
/// blocks' least ranks.
class RankBlocks {
 public:
  /// Positions. Larger ones are faster for runs of one letter (by an eighth at 32) and slower for words in
  /// which no pair stands twice.
  static constexpr size_t kBlock = 16;

  RankBlocks(MergeScratch& scratch, size_t num_positions)
      : ranks_(scratch.ranks), least_(scratch.least), num_leaves_(std::bit_ceil(blocks_for(num_positions))) {
    ranks_.assign(blocks_for(num_positions) * kBlock, kNoRank);
    least_.assign(2 * num_leaves_, static_cast<uint64_t>(kNoRank) << 32);
  }
  int32_t& operator[](size_t position) { return ranks_[position]; }
  void build() {
    for (size_t block = 0; block * kBlock < ranks_.size(); ++block)
      least_[num_leaves_ + block] = candidate_of(block);
    for (size_t node = num_leaves_ - 1; node > 0; --node)
      least_[node] = std::min(least_[2 * node], least_[2 * node + 1]);
  }
  /// The least rank; kNoRank where no pair is left.
  [[nodiscard]] int32_t least() const { return static_cast<int32_t>(least_[1] >> 32); }
  /// The first block with a pair of that rank.
  [[nodiscard]] size_t first_block() const { return least_[1] & 0xFFFFFFFF; }
  /// Takes note of ranks of the block that were changed.
  void update(size_t block) {
    size_t node = num_leaves_ + block;
    least_[node] = candidate_of(block);
    for (node /= 2; node > 0; node /= 2) {
      const uint64_t least = std::min(least_[2 * node], least_[2 * node + 1]);
      if (least_[node] == least) return;
      least_[node] = least;
    }
  }

 private:
  static size_t blocks_for(size_t num_positions) { return (num_positions + kBlock - 1) / kBlock; }
  [[nodiscard]] uint64_t candidate_of(size_t block) const {
    return static_cast<uint64_t>(least_of_block(block)) << 32 | block;
  }
  /// Four at once, so that a comparison need not wait for the one before.
  [[nodiscard]] int32_t least_of_block(size_t block) const {
    const int32_t* const ranks = ranks_.data() + block * kBlock;
    int32_t least[4] = {kNoRank, kNoRank, kNoRank, kNoRank};
    for (size_t i = 0; i < kBlock; i += 4)
      for (size_t k = 0; k < 4; ++k) least[k] = std::min(least[k], ranks[i + k]);
    return std::min(std::min(least[0], least[1]), std::min(least[2], least[3]));
  }
  std::vector<int32_t>& ranks_;
  std::vector<uint64_t>& least_;  // rank << 32 | block; [1] of all, [2 n] and [2 n + 1] make [n]
  size_t num_leaves_;
};

/// A long word on its way. A symbol lies at its first position; its width in positions stands there and at
/// its last one, so that both neighbours are found.
class LongWord {
 public:
  LongWord(const MergeTable& merges, std::vector<int32_t>& symbols, MergeScratch& scratch)
      : merges_(merges),
        symbols_(symbols),
        size_(symbols.size()),
        widths_(scratch.widths),
        ranks_(scratch, symbols.size()) {
    widths_.assign(size_, 1);
    for (size_t i = 0; i + 1 < size_; ++i) ranks_[i] = rank_of(i, i + 1);
    ranks_.build();
  }

  void merge() {
    while (ranks_.least() < kNoRank) sweep(ranks_.first_block(), ranks_.least());
    size_t kept = 0;
    for (size_t i = 0; i < size_; i += width(i)) symbols_[kept++] = symbols_[i];
    symbols_.resize(kept);
  }

 private:
  [[nodiscard]] size_t width(size_t position) const { return static_cast<size_t>(widths_[position]); }
  [[nodiscard]] int32_t rank_of(size_t left, size_t right) const {
    const uint64_t pair = right < size_ ? merges_.find(symbols_[left], symbols_[right]) : kNone;
    return pair == kNone ? kNoRank : static_cast<int32_t>(pair >> 32);
  }

  /// Merges the block's pairs of this rank, which is the least of all, from left to right, up to the first
  /// merge that makes a pair which has to go before the rest.
  void sweep(size_t block, int32_t rank) {
    const size_t end = std::min((block + 1) * RankBlocks::kBlock, size_);
    int32_t merged = -1;  // one rank, one pair
    for (size_t i = block * RankBlocks::kBlock; i < end; ++i) {
      if (ranks_[i] != rank) continue;
      if (merged < 0) merged = merged_at(i);
      if (merge_at(i, merged, block) <= rank) break;
    }
    ranks_.update(block);
  }

  [[nodiscard]] int32_t merged_at(size_t left) const {
    return static_cast<int32_t>(merges_.find(symbols_[left], symbols_[left + width(left)]) & 0xFFFFFFFF);
  }

  /// Returns the lesser rank of the two new pairs. `block`, that of `left`, is updated by the caller.
  int32_t merge_at(size_t left, int32_t merged, size_t block) {
    const size_t right = left + width(left);
    const size_t end = right + width(right);
    symbols_[left] = merged;
    widths_[left] = widths_[end - 1] = static_cast<int32_t>(end - left);
    set_rank(right, kNoRank, block);
    const int32_t after = ranks_[left] = rank_of(left, end);
    if (left == 0) return after;
    const size_t before = left - width(left - 1);
    const int32_t rank = rank_of(before, left);
    set_rank(before, rank, block);
    return std::min(after, rank);
  }

  void set_rank(size_t position, int32_t rank, size_t swept_block) {
    if (ranks_[position] == rank) return;
    ranks_[position] = rank;
    const size_t block = position / RankBlocks::kBlock;
    if (block != swept_block) ranks_.update(block);
  }

  const MergeTable& merges_;
  std::vector<int32_t>& symbols_;
  size_t size_;
  std::vector<int32_t>& widths_;
  RankBlocks ranks_;
};

void merge_long(const MergeTable& merges, std::vector<int32_t>& symbols, MergeScratch& scratch) {
  LongWord(merges, symbols, scratch).merge();
  if (scratch.ranks.size() > kKeptSymbols) scratch = {};  // a giant word's memory is not kept
}

}  // namespace

MergeTable::MergeTable(size_t num_merges)
    : slots_(std::bit_ceil(num_merges + num_merges / 2 + 2)), mask_(slots_.size() - 1) {}

void MergeTable::set(int32_t left, int32_t right, uint32_t rank, int32_t merged) {
  const uint64_t key = key_of(left, right);
  size_t at = slot_of(key);
  while (slots_[at].key != kNone && slots_[at].key != key) at = (at + 1) & mask_;
  slots_[at] = {key, static_cast<uint64_t>(rank) << 32 | static_cast<uint32_t>(merged)};
}

void merge_symbols(const MergeTable& merges, std::vector<int32_t>& symbols, MergeScratch& scratch) {
  if (symbols.size() < 2) return;
  if (symbols.size() <= kShortWord)
    merge_short(merges, symbols);
  else
    merge_long(merges, symbols, scratch);
}

}  // namespace plimsoll::tokenizers
