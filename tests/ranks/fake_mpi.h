// MPI between threads of one process: a message is sent once it has been received, and moves when the seed
// says.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <utility>

#include "ranks/mpi_calls.h"

namespace plimsoll::ranks::fixtures {

/// What all ranks share.
struct FakeWorld {
  struct Message {
    std::span<const std::byte> bytes;
    bool* done;
  };
  std::mutex mutex;
  std::map<std::pair<int, int>, std::deque<Message>> sent;  ///< by sender and receiver
};

class FakeMpi final : public MpiCalls {
 public:
  FakeMpi(FakeWorld& world, int rank, int ranks, unsigned seed)
      : world_(world), rank_(rank), ranks_(ranks), random_(seed + static_cast<unsigned>(rank)) {}

  Status init() override { return Ok{}; }
  void finalize() override { ++num_finalized; }
  int rank() override { return rank_; }
  int ranks() override { return ranks_; }
  Status send(std::span<const std::byte> bytes, int to, int slot) override {
    const std::lock_guard lock(world_.mutex);
    Slot& s = begin(slot);
    world_.sent[{rank_, to}].push_back({bytes, &s.done});
    return Ok{};
  }
  Status receive(std::span<std::byte> bytes, int from, int slot) override {
    const std::lock_guard lock(world_.mutex);
    begin(slot);
    wanted_[from].push_back({slot, bytes});
    return Ok{};
  }
  Result<bool> is_done(int slot) override {
    const std::lock_guard lock(world_.mutex);
    if (fails) return Error{ErrorCode::kIo, "MPI_Test failed"};
    if (random_() % 3 == 0)
      for (auto& [from, wanted] : wanted_) take_one(from, wanted);
    Slot& s = slots_[static_cast<size_t>(slot)];
    EXPECT_TRUE(s.is_used) << "slot " << slot << " has no message";
    if (s.done) s.is_used = false;
    return s.done;
  }

  int num_finalized = 0;
  bool fails = false;

 private:
  struct Slot {
    bool is_used = false, done = false;
  };
  struct Wanted {
    int slot;
    std::span<std::byte> bytes;
  };
  Slot& begin(int slot) {
    Slot& s = slots_[static_cast<size_t>(slot)];
    EXPECT_FALSE(s.is_used) << "slot " << slot << " has a message";
    s = {.is_used = true, .done = false};
    return s;
  }
  void take_one(int from, std::deque<Wanted>& wanted) {
    auto& sent = world_.sent[{from, rank_}];
    if (wanted.empty() || sent.empty()) return;
    const FakeWorld::Message message = sent.front();
    ASSERT_EQ(message.bytes.size(), wanted.front().bytes.size()) << "from " << from << " to " << rank_;
    std::ranges::copy(message.bytes, wanted.front().bytes.begin());
    *message.done = slots_[static_cast<size_t>(wanted.front().slot)].done = true;
    sent.pop_front();
    wanted.pop_front();
  }

  FakeWorld& world_;
  int rank_, ranks_;
  std::mt19937 random_;
  std::array<Slot, kMpiSlots> slots_{};
  std::map<int, std::deque<Wanted>> wanted_;
};

}  // namespace plimsoll::ranks::fixtures
