// Pieces of every rank arrive where they belong, whatever their sizes and whichever way they take.
#include "ranks/host_memory.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "ranks/exchange_checks.h"
#include "ranks/group_ranks.h"

namespace plimsoll::ranks {
namespace {

using fixtures::bytes;
using fixtures::Words;

void check_all(int ranks) {
  fixtures::with_ranks(ranks, [](Group& group) { fixtures::check_exchanges(group.communicator()); });
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
    fixtures::check_gather(group.communicator(), 10, 20);
    const double waited = group.take_wait_seconds();
    EXPECT_EQ(waited > 0.1, group.rank() == 0) << waited;
  });
}

/// Those behind which kernels go on delay nothing.
TEST(HostMemory, CountsWhatKernelsWaitWhereTheySayIt) {
  fixtures::with_ranks(2, [](Group& group) {
    runtime::Communicator& communicator = group.communicator();
    communicator.note_held(0);
    const double before = communicator.waited_seconds();
    if (group.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    fixtures::check_gather(communicator, 10, 20);
    EXPECT_EQ(communicator.waited_seconds() - before > 0.1, group.rank() == 0);
    EXPECT_EQ(group.take_wait_seconds(), 0);
    communicator.note_held(0.25);
    EXPECT_EQ(group.take_wait_seconds(), 0.25);
    EXPECT_EQ(group.take_wait_seconds(), 0);
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
