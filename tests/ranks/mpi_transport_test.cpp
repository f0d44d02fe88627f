// Pieces arrive by messages as they do through memory, in whatever order the library moves them.
#include "ranks/mpi_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "ranks/exchange_checks.h"
#include "ranks/fake_mpi.h"
#include "ranks/group_ranks.h"

namespace plimsoll::ranks {
namespace {

using testing::HasSubstr;

Status no_failure() { return Ok{}; }

TEST(MpiTransport, PiecesArriveInAnyOrderOfProgress) {
  for (const int ranks : {2, 3, 5})
    for (const unsigned seed : {1U, 2U}) {
      fixtures::FakeWorld world;
      std::vector<std::thread> threads;
      for (int rank = 0; rank < ranks; ++rank)
        threads.emplace_back([&, rank] {
          MpiTransport transport(rank, ranks, std::make_shared<fixtures::FakeMpi>(world, rank, ranks, seed),
                                 no_failure);
          ASSERT_TRUE(transport.open());
          fixtures::check_exchanges(transport);
          // More than the window of one direction holds.
          if (seed == 1) fixtures::check_exchange(transport, 1'700'000, 1'700'000);
        });
      for (std::thread& thread : threads) thread.join();
    }
}

TEST(MpiTransport, AnotherCountOfRanksIsAnotherMpi) {
  fixtures::FakeWorld world;
  MpiTransport transport(1, 4, std::make_shared<fixtures::FakeMpi>(world, 0, 1, 1U), no_failure);
  const Status opened = transport.open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(opened.error().what, HasSubstr("rank 0 of 1, its launcher as rank 1 of 4"));
}

TEST(MpiTransport, EndsWhereTheOthersHaveFailed) {
  fixtures::FakeWorld world;
  const auto calls = std::make_shared<fixtures::FakeMpi>(world, 0, 2, 1U);
  const auto failed = [&]() -> Status { return Error{ErrorCode::kIo, "rank 1 ended"}; };
  MpiTransport transport(0, 2, calls, failed);
  ASSERT_TRUE(transport.open());
  const fixtures::Words own(10);
  fixtures::Words all(20);
  const Status waited = transport.gather(fixtures::bytes(own), fixtures::bytes(all));
  ASSERT_FALSE(waited) << "nobody sends";
  EXPECT_EQ(waited.error().what, "rank 1 ended");
}

TEST(MpiTransport, TheLostRankCountsMoreThanWhatTheLibrarySays) {
  for (const bool is_named : {true, false}) {
    fixtures::FakeWorld world;
    const auto calls = std::make_shared<fixtures::FakeMpi>(world, 0, 2, 1U);
    const auto check = [&]() -> Status {
      if (is_named) return Error{ErrorCode::kIo, "rank 1 ended"};
      return Ok{};
    };
    MpiTransport transport(0, 2, calls, check);
    ASSERT_TRUE(transport.open());
    calls->fails = true;
    const fixtures::Words own(10);
    fixtures::Words all(20);
    const Status waited = transport.gather(fixtures::bytes(own), fixtures::bytes(all));
    ASSERT_FALSE(waited);
    EXPECT_EQ(waited.error().what, is_named ? "rank 1 ended" : "MPI_Test failed");
  }
}

/// Ranks with a group each, and what became of their MPI.
std::vector<int> finalized_of(int ranks, const std::function<void(Group&)>& rank) {
  fixtures::FakeWorld world;
  std::vector<std::shared_ptr<fixtures::FakeMpi>> calls;
  for (int r = 0; r < ranks; ++r) calls.push_back(std::make_shared<fixtures::FakeMpi>(world, r, ranks, 5U));
  fixtures::with_ranks(ranks, rank,
                       [&](int r) { return GroupOptions{.mpi = calls[static_cast<size_t>(r)]}; });
  std::vector<int> numbers;
  for (const auto& c : calls) numbers.push_back(c->num_finalized);
  return numbers;
}

TEST(MpiTransport, IsFinalizedWhereTheRunEndsInOrderOnly) {
  EXPECT_EQ(finalized_of(3,
                         [](Group& group) {
                           fixtures::check_exchanges(group.communicator());
                           group.leave();
                           group.leave();
                         }),
            (std::vector<int>{1, 1, 1}));
  EXPECT_EQ(finalized_of(2,
                         [](Group& group) {
                           if (group.rank() == 1) (void)group.fail({ErrorCode::kDiverged, "diverged"});
                           if (group.rank() == 0) (void)group.collect("");
                           group.leave();
                         }),
            (std::vector<int>{0, 0}))
      << "a library waits for those that have gone";
}

}  // namespace
}  // namespace plimsoll::ranks
