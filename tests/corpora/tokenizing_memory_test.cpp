#include "corpora/tokenizing_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "corpora/batch_memory.h"

namespace plimsoll::corpora {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

TEST(TokenizingMemory, WithoutABudgetAllThreadsWork) {
  const auto memory = tokenizing_memory(0, 500 * kMiB, 8);
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->num_threads, 8);
  EXPECT_EQ(memory->most_bytes_under_way, kMostBytesUnderWay);
}

TEST(TokenizingMemory, ASmallBudgetHasFewerThreadsAndReadsLessAhead) {
  const auto large = tokenizing_memory(200 * kMiB, 20 * kMiB, 4),
             small = tokenizing_memory(40 * kMiB, 20 * kMiB, 4);
  ASSERT_TRUE(large && small);
  EXPECT_EQ(large->num_threads, 4);
  EXPECT_EQ(small->num_threads, 2);
  EXPECT_LT(small->most_bytes_under_way, large->most_bytes_under_way);
}

TEST(TokenizingMemory, WhereNotOneThreadFitsTheRunIsRefusedWithWhatToDo) {
  const auto memory = tokenizing_memory(30 * kMiB, 25 * kMiB, 4);
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().code, ErrorCode::kDoesNotFit);
  EXPECT_THAT(memory.error().hint, testing::HasSubstr("memory.budget=38MiB"));
  EXPECT_TRUE(tokenizing_memory(38 * kMiB, 25 * kMiB, 4));
}

}  // namespace
}  // namespace plimsoll::corpora
