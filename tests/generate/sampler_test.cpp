// Sampling: filters against a naive reading of transformers' processors, the distribution of draws, what a
// draw depends on.
#include "generate/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <set>

namespace plimsoll::generate {
namespace {

std::vector<float> some_logits(size_t count, unsigned seed, bool coarse) {
  std::mt19937 random(seed);
  std::normal_distribution<float> draw(0.0f, 3.0f);
  std::vector<float> x(count);
  for (float& v : x) v = coarse ? std::round(draw(random)) : draw(random);
  return x;
}

/// Ids that stay: sort, remove, as the processors do it.
std::set<int32_t> naive_filter(const std::vector<float>& logits, const SamplingOptions& o) {
  std::vector<double> x;
  for (const float v : logits) x.push_back(static_cast<double>(v / static_cast<float>(o.temperature)));
  std::set<int32_t> kept;
  std::vector<double> falling = x;
  std::sort(falling.rbegin(), falling.rend());
  const size_t k = o.top_k > 0 ? std::min(x.size(), static_cast<size_t>(o.top_k)) : x.size();
  for (size_t i = 0; i < x.size(); ++i)
    if (x[i] >= falling[k - 1]) kept.insert(static_cast<int32_t>(i));
  const auto weight = [&](int32_t id) { return std::exp(x[static_cast<size_t>(id)] - falling[0]); };
  const auto min_p = [&] { std::erase_if(kept, [&](int32_t id) { return weight(id) < o.min_p; }); };
  if (o.top_p >= 1) return min_p(), kept;
  std::vector<int32_t> rising(kept.begin(), kept.end());
  std::stable_sort(rising.begin(), rising.end(), [&](int32_t a, int32_t b) {
    return x[static_cast<size_t>(a)] < x[static_cast<size_t>(b)];
  });
  double total = 0;
  for (const int32_t id : rising) total += std::exp(x[static_cast<size_t>(id)] - falling[0]);
  double below = 0;
  for (size_t i = 0; i + 1 < rising.size(); ++i) {
    below += std::exp(x[static_cast<size_t>(rising[i])] - falling[0]) / total;
    if (below <= 1 - o.top_p) kept.erase(rising[i]);
  }
  return min_p(), kept;
}

TEST(Sampler, FiltersAsTransformersDoes) {
  for (unsigned seed = 0; seed < 20; ++seed)
    for (const bool coarse : {false, true})
      for (const double temperature : {0.5, 1.0, 2.0})
        for (const int64_t k : {0, 1, 7, 500})
          for (const auto& [p, min_p] :
               {std::pair(1.0, 0.0), {0.95, 0.0}, {0.5, 0.3}, {0.01, 1.0}, {1.0, 0.1}}) {
            const SamplingOptions o{.temperature = temperature, .top_k = k, .top_p = p, .min_p = min_p};
            const std::vector<float> logits = some_logits(200, seed, coarse);
            Sampler sampler(o, 200);
            std::vector<int32_t> ids;
            for (const auto& c : sampler.candidates(logits)) ids.push_back(c.id);
            EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
            EXPECT_EQ(std::set(ids.begin(), ids.end()), naive_filter(logits, o))
                << seed << " T " << temperature << " k " << k << " p " << p << " min-p " << min_p;
          }
}

TEST(Sampler, DrawsWithTheProbabilitiesOfTheSoftmax) {
  const std::vector<float> logits{0.0f, 1.0f, -1.0f, 2.0f, -INFINITY, 0.5f};
  const double temperature = 0.7;
  Sampler sampler({.temperature = temperature}, 6);
  constexpr int kDraws = 40000;
  std::vector<double> counts(logits.size());
  for (uint32_t i = 0; i < kDraws; ++i) counts[static_cast<size_t>(*sampler.next(logits, i % 7, i / 7))] += 1;
  double total = 0;
  for (const float x : logits) total += std::exp(static_cast<double>(x) / temperature);
  double chi2 = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double expected = kDraws * std::exp(static_cast<double>(logits[i]) / temperature) / total;
    if (expected > 0)
      chi2 += (counts[i] - expected) * (counts[i] - expected) / expected;
    else
      EXPECT_EQ(counts[i], 0);
  }
  EXPECT_LT(chi2, 23.5);  // four degrees of freedom: one in ten thousand
}

TEST(Sampler, ADrawDependsOnSeedRowAndPosition) {
  const std::vector<float> even(1000, 0.0f);
  const auto draw = [&](uint64_t seed, uint32_t row, uint32_t position) {
    return *Sampler({.temperature = 1, .seed = seed}, 1000).next(even, row, position);
  };
  EXPECT_EQ(draw(1, 2, 3), draw(1, 2, 3));
  std::set<int32_t> different{draw(1, 2, 3), draw(2, 2, 3), draw(1, 3, 3), draw(1, 2, 4),
                              draw(uint64_t{1} << 32 | 1, 2, 3)};
  EXPECT_EQ(different.size(), 5U);
}

TEST(Sampler, GreedyTakesTheFirstOfTheLargest) {
  Sampler sampler({}, 5);
  EXPECT_EQ(*sampler.next(std::vector<float>{0, 3, 1, 3, -1}, 0, 0), 1);
  EXPECT_EQ(*sampler.next(std::vector<float>{-INFINITY, -7, -INFINITY, -8, -9}, 0, 0), 1);
}

TEST(Sampler, RefusesLogitsThatAreNoNumbers) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const float bad : {std::nanf(""), kInf}) {
    Sampler sampler({}, 3);
    const auto id = sampler.next(std::vector<float>{0, bad, 1}, 0, 0);
    ASSERT_FALSE(id.ok());
    EXPECT_EQ(id.error().code, ErrorCode::kBadData);
  }
  EXPECT_FALSE(Sampler({}, 2).next(std::vector<float>{-kInf, -kInf}, 0, 0).ok());
}

TEST(SeenTokens, ArePenalisedOnceEach) {
  SeenTokens seen(130);
  for (const int32_t id : {0, 64, 129, 64}) seen.add(id);
  std::vector<float> logits(130, 2.0f);
  logits[64] = -2.0f;
  seen.penalise(logits, 4.0);
  EXPECT_EQ(logits[0], 0.5f);
  EXPECT_EQ(logits[64], -8.0f);
  EXPECT_EQ(logits[129], 0.5f);
  EXPECT_EQ(logits[1], 2.0f);
  seen.clear();
  seen.penalise(logits, 4.0);
  EXPECT_EQ(logits[0], 0.5f);
}

}  // namespace
}  // namespace plimsoll::generate
