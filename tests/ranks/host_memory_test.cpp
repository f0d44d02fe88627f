// Pieces of every rank arrive where they belong, whatever their sizes and whichever way they take.
#include "ranks/host_memory.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <thread>

#include "ranks/group_ranks.h"

namespace plimsoll::ranks {
namespace {

using Words = std::vector<uint32_t>;

std::span<const std::byte> bytes(const Words& words) { return std::as_bytes(std::span(words)); }
std::span<std::byte> bytes(Words& words) { return std::as_writable_bytes(std::span(words)); }

/// Word i of rank r.
uint32_t word(int rank, size_t i) {
  return static_cast<uint32_t>(rank) * 1'000'003U + static_cast<uint32_t>(i);
}

Words words_of(int rank, size_t count) {
  Words words(count);
  for (size_t i = 0; i < count; ++i) words[i] = word(rank, i);
  return words;
}

void check_exchange(Group& group, size_t count, size_t piece) {
  const auto ranks = static_cast<size_t>(group.ranks()), rank = static_cast<size_t>(group.rank());
  const Words own = words_of(group.rank(), count);
  Words received(ranks * piece, 0xffffffffU);
  ASSERT_TRUE(group.communicator().exchange(bytes(own), static_cast<int64_t>(piece * 4), bytes(received)));
  for (size_t from = 0; from < ranks; ++from)
    for (size_t i = 0; i < piece; ++i) {
      const size_t at = rank * piece + i;
      ASSERT_EQ(received[from * piece + i], at < count ? word(static_cast<int>(from), at) : 0U)
          << count << " words, piece " << piece << ", rank " << rank << " from " << from << " at " << i;
    }
}

void check_gather(Group& group, size_t piece, size_t whole) {
  const Words own = words_of(group.rank(), piece);
  Words all(whole);
  ASSERT_TRUE(group.communicator().gather(bytes(own), bytes(all)));
  for (size_t i = 0; i < whole; ++i)
    ASSERT_EQ(all[i], word(static_cast<int>(i / piece), i % piece)) << "at " << i << " of " << whole;
}

void check_all(int ranks) {
  fixtures::with_ranks(ranks, [](Group& group) {
    const auto r = static_cast<size_t>(group.ranks());
    for (const size_t count : {size_t{1}, size_t{7}, size_t{1000}, size_t{300'001}}) {
      check_exchange(group, count, (count + r - 1) / r);
      check_exchange(group, count, count);  // all of it is rank 0's
      check_gather(group, count, count * r);
      check_gather(group, count, count * (r - 1) + (count + 1) / 2);  // the last one is cut
      check_gather(group, count, std::max<size_t>(1, count / 2));     // only rank 0's counts
    }
  });
}

TEST(HostMemory, EachReadsTheOthers) {
  for (const int ranks : {2, 3, 5}) check_all(ranks);
}

TEST(HostMemory, ThroughSlotsWhereTheKernelRefuses) {
  ::setenv("PLIMSOLL_RANKS_STAGED", "1", 1);
  for (const int ranks : {2, 3}) check_all(ranks);
  ::unsetenv("PLIMSOLL_RANKS_STAGED");
}

TEST(HostMemory, CountsWaits) {
  fixtures::with_ranks(2, [](Group& group) {
    (void)group.take_wait_seconds();
    if (group.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(600));
    check_gather(group, 10, 20);
    const double waited = group.take_wait_seconds();
    EXPECT_EQ(waited > 0.1, group.rank() == 0) << waited;
  });
}

TEST(HostMemory, AFileThatSomebodyNamesIsNotWrittenTo) {
  const auto path =
      std::filesystem::temp_directory_path() / ("plimsoll-host-memory-" + std::to_string(::getpid()));
  const std::string content(4096, 'x');
  std::ofstream(path) << content;
  EXPECT_FALSE(HostMemory::open(1, 2, path.string(), [] { return Status(Ok{}); }));
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), content);
  std::filesystem::remove(path);
}

TEST(HostMemory, NobodyWaitsForARankThatFailed) {
  fixtures::with_ranks(3, [](Group& group) {
    if (group.rank() == 2) {
      (void)group.fail({ErrorCode::kBadData, "broken"});
      return;
    }
    Words all(30);
    const Words own(10);
    const Status status = group.communicator().gather(bytes(own), bytes(all));
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kBadData);
  });
}

}  // namespace
}  // namespace plimsoll::ranks
