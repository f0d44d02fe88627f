// Copies between addresses and files, and fills, of sizes around the blocks they go in.
#include "backends/cpu/transfer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "io/temporary_folder.h"

namespace plimsoll::cpu {
namespace {

constexpr int64_t kSizes[] = {0, 1, 3, 4096, (64 << 10) + 5, (3 << 20) + 17};
constexpr int64_t kOffset = 21;

std::vector<std::byte> some_bytes(int64_t n) {
  std::vector<std::byte> bytes(static_cast<size_t>(n));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 31 + i / 251);
  return bytes;
}

class Transfer : public testing::TestWithParam<int> {
 protected:
  ThreadPool pool_{3};
  ThreadPool* pool() { return GetParam() != 0 ? &pool_ : nullptr; }
};
INSTANTIATE_TEST_SUITE_P(AloneAndTogether, Transfer, testing::Values(0, 1));

TEST_P(Transfer, BetweenAddresses) {
  for (const int64_t n : kSizes) {
    const auto from = some_bytes(n);
    std::vector<std::byte> to(from.size());
    ASSERT_TRUE(transfer({to.data()}, {const_cast<std::byte*>(from.data())}, n, pool()).ok());
    EXPECT_EQ(to, from) << n;
  }
}

TEST_P(Transfer, ThroughFilesAndBack) {
  const io::TemporaryFolder folder;
  for (const int64_t n : kSizes) {
    auto a = DiskMemory::create(Bytes(n + kOffset), folder.path());
    auto b = DiskMemory::create(Bytes(n + kOffset), folder.path());
    ASSERT_TRUE(a.ok() && b.ok());
    auto from = some_bytes(n);
    std::vector<std::byte> to(from.size());
    const Place in_a = place_of({a->get(), kOffset}, Bytes(n)),
                in_b = place_of({b->get(), kOffset}, Bytes(n));
    ASSERT_TRUE(transfer(in_a, {from.data()}, n, pool()).ok());
    ASSERT_TRUE(transfer(in_b, in_a, n, pool()).ok());
    ASSERT_TRUE(transfer({to.data()}, in_b, n, pool()).ok());
    EXPECT_EQ(to, from) << n;
  }
}

TEST_P(Transfer, FillsRepeatThePatternAndCutTheLast) {
  const io::TemporaryFolder folder;
  for (const uint32_t pattern : {0x7fa5a5a5U, 0U, 0xa5a5a5a5U})
    for (const int64_t n : kSizes) {
      std::vector<std::byte> expected(static_cast<size_t>(n) + 4);
      for (size_t at = 0; at + 4 <= expected.size(); at += 4) std::memcpy(&expected[at], &pattern, 4);
      expected.resize(static_cast<size_t>(n));
      std::vector<std::byte> filled(static_cast<size_t>(n) + 1, std::byte{1});
      ASSERT_TRUE(fill({filled.data()}, n, pattern, pool()).ok());
      EXPECT_EQ(filled.back(), std::byte{1}) << "beyond its end";
      filled.resize(static_cast<size_t>(n));
      EXPECT_EQ(filled, expected) << n;
      auto disk = DiskMemory::create(Bytes(n), folder.path());
      ASSERT_TRUE(disk.ok());
      std::vector<std::byte> read(static_cast<size_t>(n));
      ASSERT_TRUE(fill(place_of({disk->get(), 0}, Bytes(n)), n, pattern, pool()).ok());
      ASSERT_TRUE(transfer({read.data()}, place_of({disk->get(), 0}, Bytes(n)), n, pool()).ok());
      EXPECT_EQ(read, expected) << n;
    }
}

TEST(TransferDeathTest, ARangeBeyondItsMemoryIsABug) {
  const io::TemporaryFolder folder;
  auto disk = DiskMemory::create(Bytes(100), folder.path());
  ASSERT_TRUE(disk.ok());
  EXPECT_DEATH((void)place_of({disk->get(), 90}, Bytes(11)), "beyond its memory");
  EXPECT_DEATH((void)place_of({nullptr, 0}, Bytes(1)), "beyond its memory");
}

}  // namespace
}  // namespace plimsoll::cpu
