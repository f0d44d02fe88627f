// The weights that dropout keeps are those of ops/philox.h, before and behind the block number that has 32
// bits.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "backends/cpu/kernels/attention/attention_bf16_blocks.h"
#include "ops/philox.h"

namespace plimsoll::cpu::bf16 {
namespace {

const ops::RandomStream kStream{11, 22, 33, 44, 55};

TEST(DrawKept, FollowsTheCountersOfLongSequencesToo) {
  const AttentionDropout dropout{.on = true, .threshold = 0x80000000U, .inverse_keep = 2, .stream = kStream};
  // Tokens, and the first query and key of a panel: ordinary, across 2^32 within a vector of queries at
  // several places, across it between keys, and far behind.
  struct Panel {
    int64_t tokens, query, key;
  };
  std::vector<Panel> panels = {
      {300, 64, 32}, {131'072, 131'040, 131'040}, {131'073, 131'040, 131'040}, {1'000'000, 999'968, 999'968}};
  constexpr int64_t kTokens = 140'000,
                    kRow = (int64_t{1} << 32) / kTokens;       // the last whole row of four keys
  const int64_t across = (int64_t{1} << 32) - kRow * kTokens;  // the query that is block 2^32
  for (const int64_t before : {1, 3, 5, 8, 13, 21, 31})
    panels.push_back({kTokens, across - before, kRow * 4 / 32 * 32});
  for (const auto& [tokens, query, key] : panels) {
    KeptWeights kept;
    draw_kept(dropout, kStream, query, key, tokens, kept);
    for (int64_t i = 0; i < kPanel; ++i)
      for (int64_t j = 0; j < kPanel; ++j) {
        const auto words = ops::attention_words(kStream, ops::attention_block(query + i, key + j, tokens));
        ASSERT_EQ(kept.words[i] >> j & 1, words[static_cast<size_t>(j % 4)] >= dropout.threshold ? 1U : 0U)
            << tokens << " tokens, query " << query + i << ", key " << key + j;
      }
  }
}

}  // namespace
}  // namespace plimsoll::cpu::bf16
