// Ranks as sessions of one process, each on a device of its own, that exchange bytes through each other's
// memory in an order drawn anew each time: whatever the devices' queues do, all have the same bits.
#include "backends/discrete/discrete_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <functional>
#include <optional>
#include <random>
#include <thread>

#include "base/process.h"
#include "ir/network_queue.h"
#include "ops/ops.h"
#include "ops/ranks.h"
#include "ops/shard.h"
#include "passes/order/overlap_ranks.h"
#include "passes/training/accumulate_pieces.h"
#include "passes/training/sum_over_ranks.h"
#include "passes/training/unshard.h"
#include "runtime/session_testing.h"

namespace plimsoll::discrete {
namespace {

using ir::ValueId;

/// Where ranks of a process meet.
struct Meeting {
  explicit Meeting(int ranks) : all_there(ranks), own(static_cast<size_t>(ranks)) {}
  std::barrier<> all_there;
  std::vector<std::span<const std::byte>> own;
};

class InProcess final : public runtime::Communicator {
 public:
  InProcess(int rank, Meeting& meeting, uint64_t seed)
      : rank_(rank), meeting_(meeting), dice_(seed * 31 + static_cast<uint64_t>(rank)) {}
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int ranks() const override { return static_cast<int>(meeting_.own.size()); }

  Status exchange(std::span<const std::byte> own, int64_t piece_bytes,
                  std::span<std::byte> received) override {
    const auto piece = static_cast<size_t>(piece_bytes);
    meet(own, [&](size_t from, std::span<const std::byte> theirs) {
      const size_t begin = std::min(theirs.size(), static_cast<size_t>(rank_) * piece);
      const auto mine = theirs.subspan(begin, std::min(piece, theirs.size() - begin));
      const auto to = received.subspan(from * piece, piece);
      std::ranges::fill(std::ranges::copy(mine, to.begin()).out, to.end(), std::byte{0});
    });
    return Ok{};
  }
  Status gather(std::span<const std::byte> piece, std::span<std::byte> whole) override {
    meet(piece, [&](size_t from, std::span<const std::byte> theirs) {
      const size_t begin = std::min(whole.size(), from * theirs.size());
      std::ranges::copy(theirs.first(std::min(theirs.size(), whole.size() - begin)),
                        whole.subspan(begin).begin());
    });
    return Ok{};
  }

 private:
  /// Of every rank, in any order, in its own time.
  template <typename Take>
  void meet(std::span<const std::byte> own, const Take& take) {
    meeting_.own[static_cast<size_t>(rank_)] = own;
    meeting_.all_there.arrive_and_wait();
    std::vector<size_t> order(meeting_.own.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), dice_);
    for (const size_t from : order) {
      if (dice_() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(dice_() % 200));
      take(from, meeting_.own[from]);
    }
    meeting_.all_there.arrive_and_wait();
  }

  const int rank_;
  Meeting& meeting_;
  std::mt19937_64 dice_;
};

constexpr int64_t kRankElements = 3 * ops::kPieceGrain + 5;
constexpr int kRankBlocks = 4;

/// Forward through weights of which each rank has a piece, backward to gradients; these are summed whole, or
/// each rank has its piece of the sum.
ir::Graph program(int64_t ranks, bool early) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  const ir::TensorType whole{ir::DType::kF32, {kRankElements}};
  const ir::TensorType piece{ir::DType::kF32, {ops::piece_elements(kRankElements, ranks)}};
  ValueId y = b.state({"x", whole, ir::StateClass::kInput});
  for (int32_t block = 0; block < kRankBlocks; ++block) {
    const auto scope = b.block(block, "layers");
    const ValueId kept = b.state({"w" + std::to_string(block), piece, ir::StateClass::kParameter});
    y = ops::silu(b, ops::add(b, y, ops::unshard(b, kept, whole, ranks, -1)));
  }
  std::vector<ValueId> gradients;
  std::vector<passes::PieceAccumulation> pieces;
  for (int32_t block = kRankBlocks - 1; block >= 0; --block) {
    const auto scope = b.block(block, "layers");
    const ValueId gradient = ops::silu(b, y);
    y = ops::mul(b, y, gradient);
    if (block % 2 == 0) {
      gradients.push_back(gradient);
      continue;
    }
    const std::string name = "piece" + std::to_string(block);
    graph.declare_state({name, piece, ir::StateClass::kGradient});
    pieces.push_back({gradient, name, /*first=*/true});
  }
  PLIMSOLL_CHECK(passes::accumulate_pieces(graph, pieces, ranks).ok());
  const std::vector<ValueId> sums = passes::sum_over_ranks(b, gradients, ranks);
  for (size_t i = 0; i < sums.size(); ++i) {
    const std::string name = "sum" + std::to_string(i);
    graph.declare_state({name, whole, ir::StateClass::kOutput});
    b.assign(name, sums[i]);
  }
  PLIMSOLL_CHECK(b.status().ok());
  passes::overlap_ranks(graph, early);
  return graph;
}

/// Forward through weights that each rank has whole and updates a piece of; the pieces come at the end, or
/// `late`, at the beginning of the next run.
ir::Graph updating(int64_t ranks, bool late, bool early) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  const ir::TensorType whole{ir::DType::kF32, {kRankElements}};
  ValueId y = b.state({"x", whole, ir::StateClass::kInput});
  passes::Sharding sharding{.ranks = ranks, .gathers_late = true};
  std::vector<ValueId> weights;
  for (int32_t block = 0; block < kRankBlocks; ++block) {
    const auto scope = b.block(block, "layers");
    sharding.late.push_back("w" + std::to_string(block));
    weights.push_back(b.state({sharding.late.back(), whole, ir::StateClass::kParameter}));
    y = ops::silu(b, ops::add(b, y, weights.back()));
  }
  graph.declare_state({"y", whole, ir::StateClass::kOutput});
  b.assign("y", y);
  for (size_t i = 0; i < weights.size(); ++i) {
    const ValueId w = weights[i];
    const ValueId piece = ops::own_piece(b, w, ranks, ops::piece_elements(kRankElements, ranks));
    b.assign(sharding.late[i], ops::all_gather(b, ops::silu(b, piece), w, ranks));
  }
  PLIMSOLL_CHECK(b.status().ok());
  if (late) PLIMSOLL_CHECK(passes::unshard(graph, sharding).ok());
  passes::overlap_ranks(graph, early);
  return graph;
}

std::vector<float> numbers(int64_t count, int salt) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>((i * 7 + salt * 13) % 101 - 50) / 37);
  return values;
}

/// What ranks run: its graph, what a weight is of which rank, and the states to look at.
struct RankProgram {
  std::function<ir::Graph(int64_t ranks, bool early)> graph;
  std::function<std::vector<float>(int ranks, int rank, int block)> weight;
  std::vector<const char*> read;
};
const RankProgram kShared = {program,
                             [](int ranks, int rank, int block) {
                               return numbers(ops::piece_elements(kRankElements, ranks), rank + 100 * block);
                             },
                             {"sum0", "sum1", "piece1", "piece3"}};
RankProgram updating_program(bool late) {
  return {[late](int64_t ranks, bool early) { return updating(ranks, late, early); },
          [](int, int, int block) { return numbers(kRankElements, 100 * block); },
          {"y"}};
}

/// What every state that is looked at holds behind three runs, rank by rank.
std::vector<float> results(int ranks, bool early, std::optional<DiscreteOptions> discrete,
                           const RankProgram& what = kShared) {
  Meeting meeting(ranks);
  std::vector<std::vector<float>> all(static_cast<size_t>(ranks));
  const auto run = [&](int rank) {
    InProcess communicator(rank, meeting, discrete && discrete->seed ? *discrete->seed : 1);
    std::unique_ptr<runtime::Device> device;
    if (discrete) {
      DiscreteOptions options = *discrete;
      options.communicator = &communicator;
      device = *DiscreteDevice::create(options);
    } else {
      device = std::make_unique<cpu::CpuDevice>(1, "", &communicator);
    }
    std::vector<passes::Program> programs;
    programs.push_back(*session_testing::plan_program(what.graph(ranks, early), device->target()));
    const auto session = runtime::Session::create(
        *device, *passes::plan_session(std::move(programs), {.transfer_bytes = 1 << 16}));
    PLIMSOLL_CHECK(session.ok());
    for (int block = 0; block < kRankBlocks; ++block)
      session_testing::write_state(**session, "w" + std::to_string(block), what.weight(ranks, rank, block));
    for (int step = 0; step < 3; ++step) {
      session_testing::write_state(**session, "x", numbers(kRankElements, rank + 1000 * step));
      PLIMSOLL_CHECK((*session)->run(0).ok());
      for (const char* name : what.read) {
        const std::vector<float> values = session_testing::read_state<float>(**session, name);
        std::vector<float>& mine = all[static_cast<size_t>(rank)];
        mine.insert(mine.end(), values.begin(), values.end());
      }
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(run, rank);
  for (std::thread& thread : threads) thread.join();
  std::vector<float> joined;
  for (const std::vector<float>& of_rank : all) joined.insert(joined.end(), of_rank.begin(), of_rank.end());
  return joined;
}

TEST(RanksOfOneProcess, HaveTheSameBitsHoweverTheirQueuesRun) {
  for (const int ranks : {2, 3}) {
    const std::vector<float> expected = results(ranks, /*early=*/false, std::nullopt);
    EXPECT_TRUE(results(ranks, /*early=*/true, std::nullopt) == expected) << ranks;
    for (uint64_t seed = 1; seed <= 6; ++seed)
      for (const bool early : {false, true}) {
        const DiscreteOptions options{.seed = seed, .check = seed % 3 == 2, .shares_host = seed % 3 == 0};
        EXPECT_TRUE(results(ranks, early, options) == expected) << ranks << " ranks, seed " << seed;
      }
  }
}

TEST(RanksOfOneProcess, GatherWhatTheyHaveUpdatedLate) {
  for (const int ranks : {2, 3}) {
    const std::vector<float> expected =
        results(ranks, /*early=*/false, std::nullopt, updating_program(false));
    EXPECT_TRUE(results(ranks, /*early=*/true, std::nullopt, updating_program(true)) == expected) << ranks;
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      const DiscreteOptions options{.seed = seed, .check = seed % 3 == 2, .shares_host = seed % 3 == 0};
      EXPECT_TRUE(results(ranks, /*early=*/true, options, updating_program(true)) == expected)
          << ranks << " ranks, seed " << seed;
    }
  }
}

TEST(RanksOfOneProcess, EightOfThem) {
  const std::vector<float> expected = results(8, /*early=*/false, std::nullopt);
  for (uint64_t seed = 20; seed < 22; ++seed)
    EXPECT_TRUE(results(8, /*early=*/true, DiscreteOptions{.seed = seed}) == expected) << seed;
}

/// A rank whose others have gone.
class Left final : public runtime::Communicator {
 public:
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int ranks() const override { return 2; }
  Status exchange(std::span<const std::byte>, int64_t, std::span<std::byte>) override { return gone(); }
  Status gather(std::span<const std::byte>, std::span<std::byte>) override { return gone(); }
  int asked = 0;

 private:
  Status gone() {
    ++asked;
    return Error{ErrorCode::kIo, "rank 1 ended"};
  }
};

TEST(RanksOfOneProcess, WhatAnotherRankHasFailedWithComesBackAndNothingMoreIsExchanged) {
  for (const bool discrete : {false, true}) {
    Left communicator;
    std::unique_ptr<runtime::Device> device;
    if (discrete)
      device = *DiscreteDevice::create({.communicator = &communicator});
    else
      device = std::make_unique<cpu::CpuDevice>(1, "", &communicator);
    std::vector<passes::Program> programs;
    programs.push_back(*session_testing::plan_program(program(2, true), device->target()));
    const auto session = runtime::Session::create(
        *device, *passes::plan_session(std::move(programs), {.transfer_bytes = 1 << 16}));
    ASSERT_TRUE(session);
    Status ran = (*session)->run(0);
    if (ran) ran = (*session)->synchronize();
    ASSERT_FALSE(ran) << discrete;
    EXPECT_EQ(ran.error().code, ErrorCode::kIo);
    EXPECT_NE(ran.error().message().find("rank 1 ended"), std::string::npos) << ran.error().message();
    EXPECT_EQ(communicator.asked, 1);
  }
}

/// Its exchange ends when the test lets it.
class Held final : public runtime::Communicator {
 public:
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int ranks() const override { return 2; }
  Status exchange(std::span<const std::byte>, int64_t, std::span<std::byte>) override {
    for (int i = 0; i < 10'000 && !goes; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ended = true;
    return Ok{};
  }
  Status gather(std::span<const std::byte>, std::span<std::byte>) override { return Ok{}; }
  /// It waits for others from its start on.
  [[nodiscard]] double waited_seconds() const override { return now_seconds() - start; }
  void note_held(double seconds) override { held += seconds; }
  std::atomic<bool> goes = false, ended = false;
  const double start = now_seconds();
  double held = 0;  ///< on the thread of the kernels
};

TEST(RanksOfOneProcess, ACpuComputesWhileItExchanges) {
  Held communicator;
  cpu::CpuDevice device(1, "", &communicator);
  const auto memory = *device.allocate(ir::MemorySpace::kDevice, Bytes(3 * 4 * ops::kPieceGrain));
  const auto ref = [&](int64_t begin, ir::Shape shape) {
    return runtime::TensorRef{
        memory->address() + 4 * begin, {ir::DType::kF32, shape}, ir::dense_strides(shape)};
  };
  const ir::Op exchange{.def = ops::find_op("exchange"), .attrs = {{"ranks", int64_t{2}}}};
  const std::array sent = {ref(0, {2})};
  const std::array received = {ref(ops::kPieceGrain, {2, ops::kPieceGrain})};
  const ir::Op silu{.def = ops::find_op("silu")};
  const std::array result = {ref(2, {2})};
  const runtime::EventId arrived = device.make_event();
  ASSERT_TRUE(device.fill({memory.get(), 0}, memory->size(), 0, ir::Queue::kCompute));
  ASSERT_TRUE(device.launch({&exchange, sent, received, {}}, ir::kNetworkQueue));
  ASSERT_TRUE(device.record(arrived, ir::kNetworkQueue));
  ASSERT_TRUE(device.launch({&silu, sent, result, {}}, ir::Queue::kCompute));
  EXPECT_FALSE(communicator.ended) << "the kernel did not wait";
  EXPECT_EQ(communicator.held, 0) << "nor does what nobody waits for count as a wait";
  std::thread others([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    communicator.goes = true;
  });
  ASSERT_TRUE(device.wait(ir::Queue::kCompute, arrived));
  others.join();
  EXPECT_TRUE(communicator.ended);
  EXPECT_GT(communicator.held, 0.01);
}

}  // namespace
}  // namespace plimsoll::discrete
