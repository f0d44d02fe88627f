// What rank 1 of 3 asks of NCCL, by a table of calls that write it down; ranks that exchange are in
// e2e/card_ranks_test.cpp.
#include "backends/cuda/nccl_collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "backends/cuda/immediate_stream.h"

namespace plimsoll::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Calls = std::vector<std::string>;

struct Log {
  Calls calls;
  int async_error = 0, refused = 0;
};
Log& log_of_calls() {
  static Log log;
  return log;
}
int note(std::string call) {
  log_of_calls().calls.push_back(std::move(call));
  return log_of_calls().refused;
}

Nccl table() {
  log_of_calls() = {};
  Nccl n{.path = "libnccl.so.2", .version = "2.28.9"};
  n.error_text = [](int error) { return error == 6 ? "remote error" : "invalid usage"; };
  n.last_error = [](Handle) { return "Duplicate GPU detected"; };
  n.make_id = [](NcclId*) { return note("id"); };
  n.connect = [](Handle* made, int ranks, NcclId id, int rank, NcclConfig* config) {
    *made = &log_of_calls();
    EXPECT_EQ(config->bytes, 40U) << "of version 2.17";
    return note("connect " + std::to_string(rank) + " of " + std::to_string(ranks) + " by " + id.bytes);
  };
  n.abort = [](Handle) { return note("abort"); };
  n.async_error = [](Handle, int* error) { return *error = log_of_calls().async_error, 0; };
  n.group_start = [] { return note("("); };
  n.group_end = [] { return note(")"); };
  n.send = [](const void* from, size_t count, int, int to, Handle, Handle) {
    return note(std::to_string(count) + " from " + *static_cast<const char*>(from) + " to " +
                std::to_string(to));
  };
  n.receive = [](void* to, size_t count, int, int from, Handle, Handle) {
    std::memset(to, '0' + from, count);
    return note(std::to_string(count) + " of " + std::to_string(from));
  };
  n.all_gather = [](const void*, void*, size_t count, int, Handle, Handle) {
    return note("gather " + std::to_string(count));
  };
  n.broadcast = [](const void* from, void* to, size_t count, int, int root, Handle, Handle) {
    EXPECT_EQ(from, to);
    return note("broadcast " + std::to_string(count) + " of " + std::to_string(root));
  };
  return n;
}

/// Rank 1 of 3, whose first rank broadcasts an id.
class Host final : public runtime::Communicator {
 public:
  [[nodiscard]] int rank() const override { return 1; }
  [[nodiscard]] int ranks() const override { return 3; }
  Status exchange(std::span<const std::byte> /*own*/, int64_t /*piece_bytes*/,
                  std::span<std::byte> /*received*/) override {
    return Ok{};
  }
  Status gather(std::span<const std::byte> /*piece*/, std::span<std::byte> /*whole*/) override {
    return Ok{};
  }
  Status broadcast(int root, std::span<std::byte> bytes) override {
    EXPECT_EQ(root, 0);
    bytes[0] = std::byte{'x'};
    return Ok{};
  }
};

class NcclCollectivesTest : public testing::Test {
 protected:
  std::byte* bytes(std::string& text) { return reinterpret_cast<std::byte*>(text.data()); }
  Calls taken() { return std::exchange(log_of_calls().calls, {}); }

  Nccl nccl_ = table();
  Host host_;
  NcclCollectives ranks_{nccl_, host_};
  fixtures::ImmediateStream stream_;
};

TEST_F(NcclCollectivesTest, RanksMeetByTheFirstOnesId) {
  ASSERT_TRUE(ranks_.connect());
  EXPECT_THAT(taken(), ElementsAre("connect 1 of 3 by x"));
}

/// Pieces of 8 bytes: this rank's is the second, of 4.
TEST_F(NcclCollectivesTest, ShorterPiecesEndWithZeros) {
  ASSERT_TRUE(ranks_.connect());
  (void)taken();
  std::string own = "aaaaaaaabbbb", received(24, '?');
  ASSERT_TRUE(ranks_.exchange(bytes(own), 12, 8, bytes(received), stream_));
  EXPECT_THAT(taken(), ElementsAre("(", "4 of 0", "8 from a to 0", "4 of 2", ")"));
  EXPECT_EQ(received, std::string("0000\0\0\0\0bbbb\0\0\0\0002222\0\0\0\0", 24));
}

TEST_F(NcclCollectivesTest, OnlyWholePiecesAreGatheredByTheLibrary) {
  ASSERT_TRUE(ranks_.connect());
  (void)taken();
  std::string piece = "bbbb", whole(12, '?');
  ASSERT_TRUE(ranks_.gather(bytes(piece), 4, bytes(whole), 12, stream_));
  ASSERT_TRUE(ranks_.broadcast(2, bytes(whole), 12, stream_));
  EXPECT_THAT(taken(), ElementsAre("gather 4", "broadcast 12 of 2"));
  ASSERT_TRUE(ranks_.gather(bytes(piece), 4, bytes(whole), 10, stream_));
  EXPECT_THAT(taken(), ElementsAre("(", "4 from b to 2", "4 of 0", "4 from b to 0", "2 of 2", ")"));
  EXPECT_EQ(whole.substr(0, 10), "0000bbbb22");
}

TEST_F(NcclCollectivesTest, ErrorsAreTheLibrarysWords) {
  log_of_calls().refused = 5;
  const Status refused = ranks_.connect();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what, "NCCL 2.28.9: invalid usage: Duplicate GPU detected");
  EXPECT_THAT(refused.error().hint, HasSubstr("distributed.transport=shm"));
}

TEST_F(NcclCollectivesTest, ALostNetworkIsAnErrorOfNccl) {
  ASSERT_TRUE(ranks_.connect());
  log_of_calls().async_error = 7;  // in progress
  EXPECT_TRUE(ranks_.look());
  log_of_calls().async_error = 6;
  EXPECT_THAT(ranks_.look().error().what, HasSubstr("remote error"));
  EXPECT_FALSE(ranks_.status()) << "from here on";
}

TEST(NcclCollectives, EndsByAnAbortAlone) {
  const Nccl nccl = table();
  Host host;
  {
    NcclCollectives ranks(nccl, host);
    ASSERT_TRUE(ranks.connect());
    log_of_calls().calls.clear();
  }
  EXPECT_THAT(log_of_calls().calls, ElementsAre("abort"));
}

}  // namespace
}  // namespace plimsoll::cuda
