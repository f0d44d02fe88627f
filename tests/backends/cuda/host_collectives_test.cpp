// Bytes of cards between ranks through the memory of their hosts: ranks are threads, a card's memory is
// theirs.
#include "backends/cuda/host_collectives.h"

#include <gtest/gtest.h>

#include "backends/cuda/immediate_stream.h"
#include "ranks/exchange_checks.h"
#include "ranks/group_ranks.h"

namespace plimsoll::cuda {
namespace {

/// What a card's ops between ranks do, as a communicator.
class OfCards final : public runtime::Communicator {
 public:
  explicit OfCards(runtime::Communicator& host)
      : staging_(static_cast<size_t>(HostCollectives::staging_bytes(host.ranks()))),
        collectives_(host, staging_) {}
  [[nodiscard]] int rank() const override { return collectives_.rank(); }
  [[nodiscard]] int ranks() const override { return collectives_.ranks(); }
  Status exchange(std::span<const std::byte> own, int64_t piece_bytes,
                  std::span<std::byte> received) override {
    EXPECT_TRUE(collectives_.exchange(own.data(), std::ssize(own), piece_bytes, received.data(), stream_));
    return collectives_.status();
  }
  Status gather(std::span<const std::byte> piece, std::span<std::byte> whole) override {
    EXPECT_TRUE(
        collectives_.gather(piece.data(), std::ssize(piece), whole.data(), std::ssize(whole), stream_));
    return collectives_.status();
  }
  Status broadcast(int root, std::span<std::byte> bytes) override {
    EXPECT_TRUE(collectives_.broadcast(root, bytes.data(), std::ssize(bytes), stream_));
    return collectives_.status();
  }

 private:
  std::vector<std::byte> staging_;
  HostCollectives collectives_;
  fixtures::ImmediateStream stream_;
};

/// The largest goes in several chunks, of which the last is shorter.
TEST(HostCollectives, PiecesArriveWhereTheyBelong) {
  for (const int ranks : {2, 3})
    ranks::fixtures::with_ranks(ranks, [](ranks::Group& group) {
      using namespace ranks::fixtures;
      OfCards cards(group.communicator());
      const auto r = static_cast<size_t>(cards.ranks());
      for (const size_t count : {size_t{1}, size_t{1000}, size_t{2'100'001}}) {
        check_exchange(cards, count, (count + r - 1) / r);
        check_exchange(cards, count, count);  // all of it is rank 0's
        check_gather(cards, count, count * r);
        check_gather(cards, count, count * (r - 1) + (count + 1) / 2);  // the last one is cut
        check_broadcast(cards, count);
      }
    });
}

class Refusing final : public runtime::Communicator {
 public:
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int ranks() const override { return 2; }
  Status exchange(std::span<const std::byte> /*own*/, int64_t /*piece_bytes*/,
                  std::span<std::byte> /*received*/) override {
    ++calls;
    return Error{ErrorCode::kIo, "rank 1 has gone"};
  }
  Status gather(std::span<const std::byte> /*piece*/, std::span<std::byte> /*whole*/) override {
    ++calls;
    return Ok{};
  }
  int calls = 0;
};

TEST(HostCollectives, BehindAnErrorNothingIsMoved) {
  Refusing host;
  OfCards cards(host);
  std::vector<std::byte> bytes(8), received(16);
  EXPECT_EQ(cards.exchange(bytes, 8, received).error().what, "rank 1 has gone");
  EXPECT_FALSE(cards.gather(bytes, received));
  EXPECT_EQ(host.calls, 1);
}

}  // namespace
}  // namespace plimsoll::cuda
