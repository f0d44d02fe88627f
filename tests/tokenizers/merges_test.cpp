// Merges by rank: both loops against the definition.
#include "tokenizers/merges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace plimsoll::tokenizers {
namespace {

/// The definition, quadratic.
void merge_plainly(const MergeTable& merges, std::vector<int32_t>& symbols) {
  while (true) {
    size_t best = symbols.size();
    uint64_t least = MergeTable::kNone;
    for (size_t i = 0; i + 1 < symbols.size(); ++i)
      if (merges.find(symbols[i], symbols[i + 1]) >> 32 < least >> 32) {
        least = merges.find(symbols[i], symbols[i + 1]);
        best = i;
      }
    if (best == symbols.size()) return;
    symbols[best] = static_cast<int32_t>(least & 0xFFFFFFFF);
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(Merges, ShortAndLongLoopsFollowTheDefinition) {
  uint32_t state = 1;
  const auto draw = [&state](uint32_t below) {
    return (state = state * 1664525u + 1013904223u) / 65536 % below;
  };
  MergeScratch scratch;
  for (int round = 0; round < 300; ++round) {
    MergeTable merges(40);
    for (uint32_t rank = 0; rank < 40; ++rank)
      merges.set(static_cast<int32_t>(draw(8)), static_cast<int32_t>(draw(8)), rank,
                 static_cast<int32_t>(draw(12)));
    for (const uint32_t size : {1u, 2u, 5u, 63u, 64u, 65u, 200u}) {
      std::vector<int32_t> symbols;
      for (uint32_t i = 0; i < size; ++i) symbols.push_back(static_cast<int32_t>(draw(4)));
      std::vector<int32_t> expected = symbols;
      merge_plainly(merges, expected);
      merge_symbols(merges, symbols, scratch);
      ASSERT_EQ(symbols, expected) << round << " " << size;
    }
  }
}

TEST(Merges, RunsAndRepetitionsFollowTheDefinition) {
  // a, b, c; aa, aaaa, aaaaaaaa; ab, abab; (abab, c) goes before its parts, (aa, b) before what makes aa.
  MergeTable merges(8);
  const int32_t pairs[][3] = {{9, 2, 10}, {5, 1, 11}, {0, 0, 5}, {5, 5, 6}, {6, 6, 7}, {0, 1, 8}, {8, 8, 9}};
  for (uint32_t rank = 0; rank < std::size(pairs); ++rank)
    merges.set(pairs[rank][0], pairs[rank][1], rank, pairs[rank][2]);
  MergeScratch scratch;
  for (const std::string_view unit : {"a", "ab", "aab", "ababc", "aaaaaaaaaaaaaaaaab", "cab"})
    for (const size_t size : {65u, 256u, 257u, 700u}) {
      std::vector<int32_t> symbols;
      for (size_t i = 0; i < size; ++i) symbols.push_back(unit[i % unit.size()] - 'a');
      std::vector<int32_t> expected = symbols;
      merge_plainly(merges, expected);
      merge_symbols(merges, symbols, scratch);
      ASSERT_EQ(symbols, expected) << unit << " " << size;
    }
}

}  // namespace
}  // namespace plimsoll::tokenizers
