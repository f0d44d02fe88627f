// The search: it finds what is there, proves what is not, and spends what it may.
#include "memory/search.h"

#include <gtest/gtest.h>

#include "instances.h"

namespace plimsoll::memory {
namespace {

TEST(Search, AnswersDoNotDependOnTheStrategy) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const std::vector<Buffer> buffers = random_buffers(seed, 7, 7, 6);
    const Problem problem = make_problem(buffers);
    for (int64_t capacity = problem.bound - 1; capacity < problem.bound + 3; ++capacity) {
      const Outcome expected = search(problem, capacity, 5'000, strategy_number(0)).outcome;
      ASSERT_NE(expected, Outcome::kOutOfNodes);
      for (const int64_t strategy : {1, 2, 3, 5, 10, 13, 22, 31}) {
        const SearchResult result = search(problem, capacity, 5'000, strategy_number(strategy));
        ASSERT_EQ(result.outcome, expected) << "seed " << seed << " strategy " << strategy;
        EXPECT_LE(result.packing.height, capacity);
      }
    }
  }
}

TEST(Search, KnowsWhatCannotBe) {
  // a: [0,2) 2, b: [1,3) 2, c: [2,4) 2, d: [0,1) 1, e: [3,4) 1: a live sum of 4 is not a height of 3.
  const std::vector<Buffer> buffers{{0, 2, 2}, {1, 3, 2}, {2, 4, 2}, {0, 1, 1}, {3, 4, 1}};
  const Problem problem = make_problem(buffers);
  EXPECT_EQ(search_all(problem, 3, 1000, 1).outcome, Outcome::kImpossible);
  EXPECT_EQ(search_all(problem, 4, 1000, 1).outcome, Outcome::kFound);
}

TEST(Search, StaysWithinItsNodes) {
  const Problem problem = make_problem(guillotine(7, 400, 60, 512));
  const SearchResult result = search(problem, problem.bound, 500, strategy_number(0));
  EXPECT_LE(result.nodes, 600);
  EXPECT_EQ(search_all(problem, problem.bound, 0, 2).outcome, Outcome::kOutOfNodes);
}

TEST(Search, CancelledIsOutOfNodes) {
  const Problem problem = make_problem(guillotine(1, 50, 1000, 64));
  const std::atomic<bool> cancelled = true;
  EXPECT_EQ(search(problem, problem.bound, 10'000, strategy_number(0), &cancelled).outcome,
            Outcome::kOutOfNodes);
}

}  // namespace
}  // namespace plimsoll::memory
