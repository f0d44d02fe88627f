// Short words by scanning their pairs. Long ones by a tournament: a binary tree over the positions whose leaf
// i holds rank << 32 | i for the pair that starts at symbol i; the root is the next merge, and a merge
// changes three leaves and their ancestors. Unlike a heap it holds no stale entries, and merges that run from
// left to right, as those of a long run of one letter do, stay in nearby memory.
#include "data/tokenizer/merges.h"

#include <algorithm>
#include <bit>

namespace plimsoll::tokenizer {
namespace {

constexpr size_t kShortWord = 64;  // symbols
constexpr uint64_t kNone = MergeTable::kNone;

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

class Tournament {
 public:
  /// `nodes` receives 2 n entries; the leaves are the upper half.
  Tournament(std::vector<uint64_t>& nodes, size_t num_leaves) : nodes_(nodes), num_leaves_(num_leaves) {
    nodes_.assign(2 * num_leaves, kNone);
  }
  void set_leaf(size_t position, uint64_t pair) {
    nodes_[num_leaves_ + position] = candidate(pair, position);
  }
  void build() {
    for (size_t node = num_leaves_ - 1; node > 0; --node)
      nodes_[node] = std::min(nodes_[2 * node], nodes_[2 * node + 1]);
  }
  void update(size_t position, uint64_t pair) {
    size_t node = num_leaves_ + position;
    nodes_[node] = candidate(pair, position);
    for (node /= 2; node > 0; node /= 2) {
      const uint64_t least = std::min(nodes_[2 * node], nodes_[2 * node + 1]);
      if (nodes_[node] == least) return;
      nodes_[node] = least;
    }
  }
  uint64_t best() const { return nodes_[1]; }

 private:
  std::vector<uint64_t>& nodes_;
  size_t num_leaves_;
};

void merge_long(const MergeTable& merges, std::vector<int32_t>& symbols, MergeScratch& scratch) {
  const int32_t size = static_cast<int32_t>(symbols.size());
  int32_t* const symbol = symbols.data();
  scratch.next.resize(symbols.size());
  scratch.previous.resize(symbols.size());
  int32_t* const next = scratch.next.data();
  int32_t* const previous = scratch.previous.data();
  Tournament tournament(scratch.nodes, symbols.size());
  for (int32_t i = 0; i < size; ++i) {
    next[i] = i + 1;
    previous[i] = i - 1;
    if (i + 1 < size) tournament.set_leaf(static_cast<size_t>(i), merges.find(symbol[i], symbol[i + 1]));
  }
  tournament.build();
  const auto refresh = [&](int32_t left) {
    const int32_t right = next[left];
    tournament.update(static_cast<size_t>(left),
                      right < size ? merges.find(symbol[left], symbol[right]) : kNone);
  };
  while (tournament.best() != kNone) {
    const int32_t left = static_cast<int32_t>(tournament.best() & 0xFFFFFFFF);
    const int32_t right = next[left];
    symbol[left] = static_cast<int32_t>(merges.find(symbol[left], symbol[right]) & 0xFFFFFFFF);
    next[left] = next[right];
    if (next[right] < size) previous[next[right]] = left;
    tournament.update(static_cast<size_t>(right), kNone);
    refresh(left);
    if (previous[left] >= 0) refresh(previous[left]);
  }
  size_t kept = 0;
  for (int32_t i = 0; i < size; i = next[i]) symbols[kept++] = symbol[i];
  symbols.resize(kept);
  if (scratch.nodes.size() > (size_t{1} << 20)) scratch = {};  // a giant word's memory is not kept
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

}  // namespace plimsoll::tokenizer
