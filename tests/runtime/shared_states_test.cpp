// States that ranks share, as their ranks see them: threads of one process with a session each.
#include "runtime/shared_states.h"

#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>

#include "ops/ops.h"
#include "runtime/session.h"
#include "runtime/session_testing.h"

namespace plimsoll::runtime {
namespace {

constexpr int kRanks = 3;
constexpr int64_t kElements = 100'001, kPiece = 40'000;  // the last has fewer

/// Where ranks lay what they exchange.
struct Meeting {
  std::barrier<> all{kRanks};
  std::array<std::span<const std::byte>, kRanks> shown;
};

/// Copies between threads.
class ThreadRank final : public Communicator {
 public:
  ThreadRank(Meeting& meeting, int rank) : meeting_(meeting), rank_(rank) {}
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int ranks() const override { return kRanks; }
  Status exchange(std::span<const std::byte> own, int64_t piece_bytes,
                  std::span<std::byte> received) override {
    show(own);
    for (int from = 0; from < kRanks && !received.empty(); ++from)
      std::memcpy(received.data() + from * piece_bytes,
                  meeting_.shown[static_cast<size_t>(from)].data() + rank_ * piece_bytes,
                  static_cast<size_t>(piece_bytes));
    meeting_.all.arrive_and_wait();
    return Ok{};
  }
  Status gather(std::span<const std::byte> piece, std::span<std::byte> whole) override {
    show(piece);
    for (size_t from = 0; from < kRanks; ++from)
      std::memcpy(whole.data() + from * piece.size(), meeting_.shown[from].data(), piece.size());
    meeting_.all.arrive_and_wait();
    return Ok{};
  }

 private:
  void show(std::span<const std::byte> own) {
    meeting_.shown[static_cast<size_t>(rank_)] = own;
    meeting_.all.arrive_and_wait();
  }
  Meeting& meeting_;
  int rank_;
};

std::vector<float> all_values() {
  std::vector<float> values(kElements);
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

/// A session with one state of which it has a piece, and one that is whole.
std::unique_ptr<Session> session_of(cpu::CpuDevice& device, ThreadRank& rank) {
  ir::Graph graph;
  graph.name = "update";
  ir::Builder b(graph, ops::find_op);
  const ir::ValueId shared =
      b.state({"shared", {ir::DType::kF32, {kPiece}}, ir::StateClass::kOptimizerState});
  b.state({"whole", {ir::DType::kF32, {8}}, ir::StateClass::kOptimizerState});
  b.assign("shared", ops::add(b, shared, shared));
  EXPECT_TRUE(b.status().ok());
  std::vector<passes::Program> programs;
  programs.push_back(*session_testing::plan_program(std::move(graph), device.target()));
  passes::SessionPlan plan = *passes::plan_session(std::move(programs));
  plan.share({"shared", {ir::DType::kF32, {kElements}}}, "shared");
  plan.share({"owned", {ir::DType::kF32, {8}}, -1, 1}, "whole");
  return *Session::create(device, std::move(plan), {.communicator = &rank});
}

/// Rank 0 with `read` on its session; the others serve until it ends.
void with_ranks(const std::function<void(Session&)>& read) {
  Meeting meeting;
  std::vector<std::thread> threads;
  for (int r = 0; r < kRanks; ++r)
    threads.emplace_back([&, r] {
      cpu::CpuDevice device(1);
      ThreadRank rank(meeting, r);
      const std::unique_ptr<Session> session = session_of(device, rank);
      session_testing::write_state(*session, "shared", all_values());  // of which it takes its own
      session_testing::write_state(*session, "whole", std::vector<float>(8, static_cast<float>(r)));
      if (r != 0) {
        EXPECT_TRUE(session->serve_shared_states().ok());
        return;
      }
      read(*session);
      EXPECT_TRUE(session->end_shared_reads().ok());
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(SharedStates, AreReadWholeByTheFirst) {
  with_ranks([](Session& session) {
    EXPECT_EQ(session.type("shared").num_elements(), kElements);
    const std::vector<float> expected = all_values();
    for (const auto& [first, count] :
         {std::pair<int64_t, int64_t>{0, kElements}, {39'990, 20}, {80'001, 7}}) {
      std::vector<float> got(static_cast<size_t>(count), -1);
      BackgroundReader reader(session);
      ASSERT_TRUE(reader.mark().ok());
      const Status status = reader.read(
          "shared", 4 * first, 4 * count, [&](std::span<const std::byte> piece, int64_t at) -> Status {
            std::memcpy(reinterpret_cast<std::byte*>(got.data()) + at, piece.data(), piece.size());
            return Ok{};
          });
      ASSERT_TRUE(status.ok()) << status.error().message();
      EXPECT_TRUE(std::equal(got.begin(), got.end(), expected.begin() + first)) << first;
    }
  });
}

/// What one rank has all of: the others' state of that place is another one's.
TEST(SharedStates, AreReadFromTheirOwner) {
  with_ranks([](Session& session) {
    std::vector<float> got(8, 0);
    BackgroundReader reader(session);
    ASSERT_TRUE(reader.mark().ok());
    const Status status =
        reader.read("owned", 0, 32, [&](std::span<const std::byte> piece, int64_t at) -> Status {
          std::memcpy(reinterpret_cast<std::byte*>(got.data()) + at, piece.data(), piece.size());
          return Ok{};
        });
    ASSERT_TRUE(status.ok()) << status.error().message();
    EXPECT_EQ(got, std::vector<float>(8, 1.0F));
    EXPECT_EQ(session_testing::read_state<float>(session, "whole"), std::vector<float>(8, 0.0F));
  });
}

TEST(SharedStates, AnErrorOfTheReaderIsItsOwn) {
  with_ranks([](Session& session) {
    BackgroundReader reader(session);
    ASSERT_TRUE(reader.mark().ok());
    const Status status = reader.read("shared", 0, 400, [](std::span<const std::byte>, int64_t) -> Status {
      return Error{ErrorCode::kIo, "full"};
    });
    EXPECT_FALSE(status.ok());
  });
}

/// Bytes of range [offset, offset + count) that a rank of a piece of 40 bytes has.
OwnRange of_piece(int64_t offset, int64_t count, int rank) {
  passes::SessionPlan plan;
  plan.states.push_back({{"s", {ir::DType::kF32, {10}}, ir::StateClass::kOptimizerState}, 0});
  return own_range(plan, {"s", {ir::DType::kF32, {25}}, 0}, rank, offset, count);
}

TEST(SharedStates, ARankHasItsPartOfARange) {
  EXPECT_EQ(of_piece(0, 100, 1).offset, 0);
  EXPECT_EQ(of_piece(0, 100, 1).skipped, 40);
  EXPECT_EQ(of_piece(0, 100, 1).bytes, 40);
  EXPECT_EQ(of_piece(50, 20, 1).offset, 10);
  EXPECT_EQ(of_piece(50, 40, 2).skipped, 30);
  EXPECT_EQ(of_piece(50, 40, 2).bytes, 10);
  EXPECT_EQ(of_piece(50, 20, 0).bytes, 0);
}

}  // namespace
}  // namespace plimsoll::runtime
