// What the adversary decides is a function of its seed, covers every copy once, and is of every sort.
#include "backends/discrete/adversary.h"

#include <gtest/gtest.h>

#include <vector>

namespace plimsoll::discrete {
namespace {

constexpr ir::Queue kQueues[] = {ir::Queue::kCompute, ir::Queue::kCopyIn, ir::Queue::kCopyOut,
                                 ir::Queue::kHost};

TEST(Adversary, WithoutASeedThereIsNone) {
  const Adversary none(std::nullopt);
  EXPECT_FALSE(none.is_active());
  for (uint64_t n = 1; n < 1000; ++n) {
    const Treatment t = none.treat(ir::Queue::kCopyIn, n);
    EXPECT_TRUE(!t.held && !t.starved && t.pause.count() == 0);
    EXPECT_EQ(none.cut(ir::Queue::kCopyIn, n, 1000).count, 1U);
  }
}

TEST(Adversary, TheSameSeedDecidesTheSame) {
  const Adversary a(7), b(7), other(8);
  int differences = 0;
  for (const ir::Queue queue : kQueues)
    for (uint64_t n = 1; n < 500; ++n) {
      const Treatment x = a.treat(queue, n), y = b.treat(queue, n), z = other.treat(queue, n);
      EXPECT_TRUE(x.held == y.held && x.starved == y.starved && x.pause == y.pause);
      EXPECT_EQ(a.cut(queue, n, 12345).cuts, b.cut(queue, n, 12345).cuts);
      differences += x.held != z.held || x.starved != z.starved || x.pause != z.pause;
    }
  EXPECT_GT(differences, 100);
}

TEST(Adversary, EveryQueueIsTroubledInEveryWay) {
  for (uint64_t seed = 0; seed < 20; ++seed)
    for (const ir::Queue queue : kQueues) {
      const Adversary adversary(seed);
      int held = 0, starved = 0, paused = 0, early = 0;
      for (uint64_t n = 1; n <= 3000; ++n) {
        const Treatment t = adversary.treat(queue, n);
        held += t.held;
        starved += t.starved;
        paused += t.pause.count() > 0;
        early += !t.held && !t.starved && t.pause.count() == 0;
      }
      EXPECT_GT(held, 50);
      EXPECT_GT(starved, 30);
      EXPECT_GT(paused, 20);
      EXPECT_GT(early, 800);
    }
}

TEST(Adversary, PiecesCoverTheCopyOnce) {
  size_t most = 0, out_of_order = 0;
  for (uint64_t seed = 0; seed < 50; ++seed)
    for (const int64_t bytes : {0, 1, 2, 17, 4096, 1'000'003}) {
      const Pieces pieces = Adversary(seed).cut(ir::Queue::kCopyOut, seed + 3, bytes);
      std::vector<int> seen(pieces.count);
      for (size_t i = 0; i < pieces.count; ++i) {
        ASSERT_LE(pieces.cuts[i], pieces.cuts[i + 1]);
        ++seen.at(pieces.order[i]);
        out_of_order += pieces.order[i] != i;
      }
      EXPECT_EQ(pieces.cuts[0], 0);
      EXPECT_EQ(pieces.cuts[pieces.count], bytes);
      EXPECT_EQ(seen, std::vector<int>(pieces.count, 1));
      most = std::max(most, pieces.count);
    }
  EXPECT_EQ(most, Pieces::kMost);
  EXPECT_GT(out_of_order, 50U);
}

}  // namespace
}  // namespace plimsoll::discrete
