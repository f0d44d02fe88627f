#include "planner/recompute/recompute_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <random>

namespace plimsoll::planner {
namespace {

/// Blocks of random sizes, alive one within the other as a step's are; now and then blocks alike.
RecomputeChain random_chain(uint64_t seed, size_t num_blocks, int64_t largest) {
  std::mt19937_64 engine(seed);
  const auto draw = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine() % static_cast<uint64_t>(high - low + 1));
  };
  RecomputeChain chain;
  int64_t before = 0;
  for (size_t i = 0; i < num_blocks; ++i) {
    if (i > 0 && draw(0, 2) == 0) {
      chain.blocks.push_back(chain.blocks.back());
    } else {
      RecomputeBlock block;
      const int64_t a = draw(1, largest), m = draw(1, largest), sum = draw(0, largest / 4);
      const double ca = static_cast<double>(draw(1, 90)), cm = static_cast<double>(draw(1, 90));
      block.options = {
          {{"a"}, a, ca}, {{"m"}, m, cm}, {{"a", "m"}, a + m, ca + cm}, {{"b"}, a + m + sum, ca + cm + 3}};
      block.saved_bytes = a + m + sum;
      block.seconds = ca + cm + 3;
      block.input_bytes = draw(1, largest / 3 + 1);
      block.tail_seconds = static_cast<double>(draw(1, 40));
      chain.blocks.push_back(block);
    }
    RecomputeBlock& block = chain.blocks.back();
    block.name = "layers." + std::to_string(i);
    before += block.saved_bytes + block.input_bytes;
    block.needed_bytes = before + draw(0, largest);
  }
  chain.needed_bytes = before + draw(0, 3 * largest);
  for (int64_t i = draw(0, 2); i > 0; --i)
    chain.chunks.push_back({256 * i, draw(1, 2 * largest), static_cast<double>(draw(1, 60))});
  return chain;
}

/// Tries everything.
std::optional<double> exhaustive(const RecomputeChain& chain, int64_t arena) {
  std::optional<double> best;
  const std::function<void(size_t, int64_t, double)> go = [&](size_t i, int64_t saved, double seconds) {
    if (i == chain.blocks.size()) {
      const auto end = [&](int64_t less, double more) {
        if (chain.needed_bytes - saved - less <= arena && (!best || seconds + more < *best))
          best = seconds + more;
      };
      end(0, 0);
      for (const ChunkOption& chunk : chain.chunks) end(chunk.saved_bytes, chunk.seconds);
      return;
    }
    if (chain.blocks[i].needed_bytes - saved > arena) return;
    go(i + 1, saved, seconds);
    for (const auto& option : chain.blocks[i].options)
      go(i + 1, saved + option.saved_bytes, seconds + option.seconds);
    int64_t gain = chain.blocks[i].saved_bytes;
    double cost = chain.blocks[i].seconds;
    for (size_t j = i + 1; j < chain.blocks.size() && chain.blocks[j].needed_bytes - saved <= arena; ++j) {
      gain += chain.blocks[j].saved_bytes + chain.blocks[j].input_bytes;
      cost += chain.blocks[j].seconds + chain.blocks[j - 1].tail_seconds;
      go(j + 1, saved + gain, seconds + cost);
    }
  };
  go(0, 0, 0);
  return best;
}

TEST(RecomputeSearch, IsOptimalOnSmallChains) {
  int found = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const RecomputeChain chain = random_chain(seed, 1 + seed % 6, seed % 3 == 0 ? 9 : 1000);
    for (const int64_t share : {15, 30, 45, 60, 75, 90, 100}) {
      const int64_t arena = chain.needed_bytes * share / 100;
      const auto choice = cheapest_recompute(chain, arena);
      const auto best = exhaustive(chain, arena);
      ASSERT_EQ(choice.has_value(), best.has_value()) << seed << " " << share;
      if (!best) continue;
      ++found;
      EXPECT_DOUBLE_EQ(choice->seconds, *best) << seed << " " << share;
    }
  }
  EXPECT_GT(found, 1000) << "few budgets could be met";
}

TEST(RecomputeSearch, FindsTheLeastArena) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const RecomputeChain chain = random_chain(seed, 1 + seed % 5, 100);
    const int64_t least = least_arena(chain);
    EXPECT_TRUE(exhaustive(chain, least).has_value()) << seed;
    EXPECT_FALSE(exhaustive(chain, least - 1).has_value()) << seed;
  }
}

TEST(RecomputeSearch, MoreMemoryIsNeverSlower) {
  const RecomputeChain chain = random_chain(7, 14, 1 << 20);
  double last = 1e300;
  for (int64_t arena = least_arena(chain); arena < chain.needed_bytes * 5 / 4;
       arena += chain.needed_bytes / 200) {
    const auto choice = cheapest_recompute(chain, arena);
    ASSERT_TRUE(choice.has_value());
    EXPECT_LE(choice->seconds, last);
    last = choice->seconds;
  }
  EXPECT_EQ(last, 0) << "enough for everything: nothing twice";
}

TEST(RecomputeSearch, EightyBlocksAreQuick) {
  const RecomputeChain chain = random_chain(11, 80, int64_t{1} << 30);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(cheapest_recompute(chain, chain.needed_bytes / 2).has_value());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20)) << "slow beyond any load";
}

TEST(RecomputeSearch, NamesWhatItTook) {
  RecomputeChain chain;
  for (int i = 0; i < 2; ++i)
    chain.blocks.push_back({.name = "layers." + std::to_string(i),
                            .needed_bytes = 100,
                            .options = {{{"layers." + std::to_string(i) + ".mlp"}, 30, 1}},
                            .saved_bytes = 50,
                            .seconds = 3,
                            .input_bytes = 10,
                            .tail_seconds = 2});
  chain.needed_bytes = 200;
  EXPECT_THAT(cheapest_recompute(chain, 200)->layers, testing::IsEmpty());
  EXPECT_THAT(cheapest_recompute(chain, 170)->layers, testing::SizeIs(1));
  EXPECT_THAT(cheapest_recompute(chain, 140)->layers, testing::ElementsAre("layers.0.mlp", "layers.1.mlp"));
  EXPECT_THAT(cheapest_recompute(chain, 110)->layers, testing::ElementsAre("layers.0..layers.1"));
  EXPECT_FALSE(cheapest_recompute(chain, 80).has_value());
}

TEST(RecomputeSearch, TakesSmallerChunksOfTheLossWhereTheyCostLess) {
  RecomputeChain chain;
  chain.blocks.push_back({.name = "layers.0",
                          .needed_bytes = 20,
                          .options = {{{"layers.0"}, 50, 3}},
                          .saved_bytes = 50,
                          .seconds = 3});
  chain.needed_bytes = 100;
  chain.chunks = {{512, 20, 1}, {256, 30, 4}};
  EXPECT_EQ(cheapest_recompute(chain, 100)->chunk_tokens, 0);
  const auto smaller = cheapest_recompute(chain, 80);
  EXPECT_EQ(smaller->chunk_tokens, 512);
  EXPECT_THAT(smaller->layers, testing::IsEmpty());
  const auto cheaper = cheapest_recompute(chain, 70);
  EXPECT_EQ(cheaper->chunk_tokens, 0) << "computing the layer again costs less than the smallest chunks";
  EXPECT_THAT(cheaper->layers, testing::ElementsAre("layers.0"));
  EXPECT_DOUBLE_EQ(cheapest_recompute(chain, 30)->seconds, 4);
  EXPECT_EQ(least_arena(chain), 20);
}

/// What a choice says of itself is what the search held against the arena.
TEST(RecomputeSearch, AChoiceKnowsWhatItHasSavedBeforeEachBlock) {
  int choices = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const RecomputeChain chain = random_chain(seed, 2 + seed % 6, 40);
    const int64_t arena = least_arena(chain) + static_cast<int64_t>(seed % 7);
    const auto choice = cheapest_recompute(chain, arena);
    ASSERT_TRUE(choice) << seed;
    ASSERT_EQ(choice->saved_before.size(), chain.blocks.size() + 1) << seed;
    EXPECT_EQ(choice->saved_before[0], 0) << seed;
    for (size_t i = 0; i < chain.blocks.size(); ++i) {
      EXPECT_LE(chain.blocks[i].needed_bytes - choice->saved_before[i], arena) << seed << " " << i;
      EXPECT_LE(choice->saved_before[i], choice->saved_before[i + 1]) << seed << " " << i;
    }
    EXPECT_LE(chain.needed_bytes - choice->saved_before.back(), arena) << seed;
    choices += choice->layers.empty() ? 0 : 1;
  }
  EXPECT_GT(choices, 200);
}

TEST(RecomputeSearch, WhatAProgramHeldCorrectsTheChain) {
  RecomputeChain chain;
  for (const char* name : {"layers.0", "layers.1"})
    chain.blocks.push_back(
        {.name = name, .needed_bytes = 100, .options = {{{name}, 10, 1}}, .saved_bytes = 10, .seconds = 1});
  chain.needed_bytes = 100;
  const RecomputeChoice choice = *cheapest_recompute(chain, least_arena(chain));
  const RecomputeChain seen = corrected(chain, choice, {{70, 50}, 60});
  EXPECT_EQ(seen.blocks[0].needed_bytes, 70);
  EXPECT_EQ(seen.blocks[1].needed_bytes, 50 + choice.saved_before[1]);
  EXPECT_EQ(seen.needed_bytes, 60 + choice.saved_before[2]);
  EXPECT_LT(least_arena(seen), least_arena(chain));
  // A choice that the search did not make says nothing of it.
  EXPECT_EQ(corrected(chain, {.layers = {"layers.0"}}, {{70, 50}, 60}).needed_bytes, 100);
}

}  // namespace
}  // namespace plimsoll::planner
