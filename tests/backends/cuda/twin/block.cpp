// Runs the threads of a block in turns: one goes on until it waits for others or returns, then another is
// drawn. What a kernel leaves to chance - which thread comes first between two barriers, which block, what
// shared memory holds at first - is drawn anew each time.
#include "backends/cuda/twin/block.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/twin/cuda_builtins.h"
#include "backends/cuda/twin/fiber.h"
#include "backends/cuda/twin/kernel.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace twin {
namespace {

constexpr unsigned kLanes = 32;

/// A cp.async that has not arrived.
struct LateCopy {
  void* to;
  const void* from;
  int bytes, given, group;
};

enum class State { kNew, kReady, kAtBarrier, kAtMeeting, kReturned };

struct Thread {
  State state = State::kNew;
  uint3 index{};
  char* stack = nullptr;
  void* resume = nullptr;
  Place place{};
  // At a meeting: what it brought, who takes part, where results go and whose.
  const void* mine = nullptr;
  void* out = nullptr;
  size_t bytes = 0;
  uint32_t mask = 0;
  int from = 0;
  std::vector<LateCopy> late;
  int groups = 0;  // committed
  bool has_begun = false;
};

/// The end of a mapping, so that what lies behind cannot be touched.
class DynamicShared {
 public:
  void resize(size_t bytes) {
    constexpr size_t kPage = 4096;
    bytes_ = (bytes + 15) / 16 * 16;
    const size_t needed = (bytes_ + kPage - 1) / kPage * kPage + kPage;
    if (needed > mapped_) {
      if (base_ != nullptr) munmap(base_, mapped_);
      void* at = mmap(nullptr, needed, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (at == MAP_FAILED || mprotect(static_cast<char*>(at) + needed - kPage, kPage, PROT_NONE) != 0)
        std::abort();
      base_ = static_cast<char*>(at);
      mapped_ = needed;
    }
    begin_ = base_ + mapped_ - kPage - bytes_;
  }
  [[nodiscard]] char* begin() const { return begin_; }
  [[nodiscard]] size_t bytes() const { return bytes_; }

 private:
  char *base_ = nullptr, *begin_ = nullptr;
  size_t mapped_ = 0, bytes_ = 0;
};

uint64_t seed() {
  const char* text = std::getenv("PLIMSOLL_FAKE_CUDA_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

/// Lanes by what they do, a bit each.
struct Warp {
  uint32_t ready = 0, at_meeting = 0, returned = 0;
};

/// The block that runs.
struct Block {
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  Thread* current = nullptr;
  void* scheduler = nullptr;
  const Kernel* kernel = nullptr;
  void* const* arguments = nullptr;
  Stacks stacks;
  DynamicShared dynamic;
  Votes votes{}, casting{};
  unsigned returned = 0, at_barrier = 0;
  bool is_early = false;  // it may run before the grids before it have ended
  uint64_t random = seed() * 0x9E3779B97F4A7C15u + 1;
  std::string failure;
};
Block block;

std::string words(const char* what, Place place) {
  return std::string(what) + " (" + (block.kernel == nullptr ? "" : block.kernel->name) + ", " + place.file +
         ":" + std::to_string(place.line) + ")";
}
unsigned number(const Thread& thread) { return static_cast<unsigned>(&thread - block.threads.data()); }

uint32_t bit(const Thread& thread) { return 1u << number(thread) % kLanes; }
Warp& warp_of(const Thread& thread) { return block.warps[number(thread) / kLanes]; }

void run_thread();

/// A lane of the warp that can go on, drawn, with what it needs to; null: there is none.
Thread* next_lane(Warp& warp) {
  if (warp.ready == 0 || !block.failure.empty()) return nullptr;
  const int turned = static_cast<int>(drawn(kLanes));
  const int lane = (std::countr_zero(std::rotr(warp.ready, turned)) + turned) % static_cast<int>(kLanes);
  warp.ready &= ~(1u << lane);
  Thread& thread =
      block.threads[static_cast<size_t>(&warp - block.warps.data()) * kLanes + static_cast<size_t>(lane)];
  if (thread.state == State::kNew) {
    thread.stack = block.stacks.take();
    thread.resume = begin_at(thread.stack, run_thread);
  }
  thread.state = State::kReady;
  block.current = &thread;
  threadIdx = thread.index;
  return &thread;
}

/// The current thread stops here until it is drawn again. Another lane of its warp goes on, where one can:
/// straight from here to where that one stopped, which the processor foresees.
void stop() {
  Thread& thread = *block.current;
  const Thread* next = thread.state == State::kReturned ? nullptr : next_lane(warp_of(thread));
  if (next != &thread) switch_to(&thread.resume, next == nullptr ? block.scheduler : next->resume);
}

void make_ready(Thread& thread) {
  thread.state = State::kReady;
  warp_of(thread).ready |= bit(thread);
}

/// Whether all threads that have not returned are at the barrier: then they go on.
void open_barrier() {
  const unsigned alive = static_cast<unsigned>(block.threads.size()) - block.returned;
  if (alive == 0 || block.at_barrier < alive) return;
  const Thread* first = nullptr;
  for (Thread& thread : block.threads) {
    if (thread.state != State::kAtBarrier) continue;
    if (first == nullptr) first = &thread;
    if (!(thread.place == first->place))
      block.failure = words("threads of a block are at different barriers", thread.place) + " and line " +
                      std::to_string(first->place.line);
    make_ready(thread);
  }
  block.at_barrier = 0;
  block.votes = block.casting;
}

/// What lane `from` brought; bytes of all ones where it did not come.
void bring(void* out, size_t bytes, const Thread* lanes, unsigned from, uint32_t came) {
  if ((came >> from & 1u) == 0)
    std::memset(out, 0xff, bytes);
  else if (bytes == 4)  // nearly always
    std::memcpy(out, lanes[from].mine, 4);
  else
    std::memcpy(out, lanes[from].mine, bytes);
}

/// Gives the lanes of a meeting what they came for.
void give(Thread* lanes, uint32_t came) {
  const void* all = nullptr;  // of the first who wants all of it
  for (uint32_t left = came; left != 0; left &= left - 1) {
    Thread& to = lanes[std::countr_zero(left)];
    if (to.bytes == 0) continue;
    if (to.from >= 0) {
      bring(to.out, to.bytes, lanes, static_cast<unsigned>(to.from), came);
    } else if (all != nullptr) {
      std::memcpy(to.out, all, kLanes * to.bytes);
    } else {
      for (unsigned from = 0; from < kLanes; ++from)
        bring(static_cast<char*>(to.out) + from * to.bytes, to.bytes, lanes, from, came);
      all = to.out;
    }
  }
}

/// Whether all lanes of `mask` are here that have not returned: then they go on.
void open_meeting(Warp& warp, uint32_t mask) {
  const uint32_t came = mask & ~warp.returned;
  if (came == 0 || (came & ~warp.at_meeting) != 0) return;
  Thread* lanes = &block.threads[static_cast<size_t>(&warp - block.warps.data()) * kLanes];
  const Thread& first = lanes[std::countr_zero(came)];
  for (uint32_t left = came; left != 0; left &= left - 1) {
    const Thread& lane = lanes[std::countr_zero(left)];
    if (lane.mask != mask) return;
    if (!(lane.place == first.place) || lane.bytes != first.bytes)
      block.failure = words("lanes of a warp meet at different instructions", lane.place);
  }
  if (block.failure.empty()) give(lanes, came);
  warp.at_meeting &= ~came;
  warp.ready |= came;
  for (uint32_t left = came; left != 0; left &= left - 1) lanes[std::countr_zero(left)].state = State::kReady;
}

/// Those who wait for a thread that has returned wait for one less.
void leave() {
  Thread& thread = *block.current;
  Warp& warp = warp_of(thread);
  thread.state = State::kReturned;
  if (block.is_early && !thread.has_begun)
    block.failure =
        words("a thread of a grid that may come early has not waited for those before", thread.place);
  warp.returned |= bit(thread);
  ++block.returned;
  open_barrier();
  const Thread* lanes = &thread - number(thread) % kLanes;
  for (uint32_t left = warp.at_meeting; left != 0; left &= left - 1)
    if (lanes[std::countr_zero(left)].state == State::kAtMeeting)
      open_meeting(warp, lanes[std::countr_zero(left)].mask);
}

void run_thread() {
  block.kernel->run(block.arguments);
  leave();
  stop();
}

/// Bytes of a kind that nobody takes for a result: no numbers, or very large ones.
void spoil(char* begin, size_t bytes) {
  if (bytes > 0) std::memset(begin, drawn(2) == 0 ? 0xff : 0x7f, bytes);
}

/// A warp with lanes that can go on, drawn; null: there is none.
Warp* next_warp() {
  const auto count = static_cast<unsigned>(block.warps.size()), first = drawn(count);
  for (unsigned w = 0; w < count; ++w)
    if (Warp& warp = block.warps[(first + w) % count]; warp.ready != 0) return &warp;
  return nullptr;
}

/// A warp's lanes go on, in an order that is drawn, until none can.
void run_warp(Warp& warp) {
  while (const Thread* first = next_lane(warp)) {
    switch_to(&block.scheduler, first->resume);
    Thread& last = *block.current;
    if (last.state == State::kReturned || !block.failure.empty())
      block.stacks.give_back(std::exchange(last.stack, nullptr));
  }
}

void run_block() {
  Block& b = block;
  b.returned = b.at_barrier = 0;
  std::ranges::fill(b.warps, Warp{});
  for (Thread& thread : b.threads) {
    thread.late.clear();
    thread.groups = 0;
    thread.has_begun = false;
    thread.place = here();
    make_ready(thread);
    thread.state = State::kNew;
  }
  spoil(b.kernel->shared_begin, static_cast<size_t>(b.kernel->shared_end - b.kernel->shared_begin));
  spoil(b.dynamic.begin(), b.dynamic.bytes());
  for (Warp* warp = next_warp(); warp != nullptr && b.failure.empty(); warp = next_warp()) run_warp(*warp);
  for (Thread& thread : b.threads) {
    if (thread.state == State::kReturned) continue;
    if (b.failure.empty()) b.failure = words("a thread waits for others that never come", thread.place);
    if (thread.stack != nullptr) b.stacks.give_back(std::exchange(thread.stack, nullptr));
  }
}

void arrive(const LateCopy& copy) {
  std::memcpy(copy.to, copy.from, static_cast<size_t>(copy.given));
  std::memset(static_cast<char*>(copy.to) + copy.given, 0, static_cast<size_t>(copy.bytes - copy.given));
}

}  // namespace

unsigned drawn(unsigned end) {
  uint64_t& x = block.random;
  x ^= x << 13, x ^= x >> 7, x ^= x << 17;
  return static_cast<unsigned>((x >> 32) * end >> 32);
}

Votes meet_block(int vote, Place place) {
  Thread& thread = *block.current;
  thread.place = place;
  thread.state = State::kAtBarrier;
  if (block.at_barrier++ == 0) block.casting = {0, 1, 0};
  block.casting.any |= vote != 0 ? 1 : 0;
  block.casting.all &= vote != 0 ? 1 : 0;
  block.casting.count += vote != 0 ? 1 : 0;
  open_barrier();
  stop();
  return block.votes;
}

void meet_lanes(const void* mine, size_t bytes, uint32_t mask, int from, void* out, Place place) {
  Thread& thread = *block.current;
  thread.place = place;
  if ((mask & bit(thread)) == 0) fail("a lane is not in the mask that it names", place);
  thread.state = State::kAtMeeting;
  warp_of(thread).at_meeting |= bit(thread);
  thread.mine = mine, thread.bytes = bytes, thread.mask = mask, thread.from = from, thread.out = out;
  open_meeting(warp_of(thread), mask);
  stop();
}

int lane() { return static_cast<int>(number(*block.current) % kLanes); }
void* dynamic_shared() { return block.dynamic.begin(); }

void async_copy(void* to, const void* from, int bytes, int given) {
  Thread& thread = *block.current;
  std::memset(to, 0xff, static_cast<size_t>(bytes));
  thread.late.push_back({to, from, bytes, given, thread.groups});
}
void async_commit() { ++block.current->groups; }
void async_wait(int pending) {
  Thread& thread = *block.current;
  const auto is_due = [&](const LateCopy& copy) {
    return pending < 0 || copy.group < thread.groups - pending;
  };
  for (const LateCopy& copy : thread.late)
    if (is_due(copy)) arrive(copy);
  std::erase_if(thread.late, is_due);
}

void begin_grid() { block.current->has_begun = true; }

void fail(const char* what, Place place) {
  block.failure = words(what, place);
  stop();
  std::abort();
}

std::string run_grid(const Kernel& kernel, Extent grid, Extent extent, size_t shared_bytes,
                     void* const* arguments, bool is_early) {
  Block& b = block;
  b.is_early = is_early;
  b.kernel = &kernel;
  b.arguments = arguments;
  b.failure.clear();
  b.dynamic.resize(shared_bytes);
  b.threads.resize(size_t{extent.x} * extent.y * extent.z);
  b.warps.resize((b.threads.size() + kLanes - 1) / kLanes);
  gridDim = {grid.x, grid.y, grid.z};
  blockDim = {extent.x, extent.y, extent.z};
  for (unsigned t = 0; t < b.threads.size(); ++t)
    b.threads[t].index = {t % extent.x, t / extent.x % extent.y, t / extent.x / extent.y};
  std::vector<unsigned> order(size_t{grid.x} * grid.y * grid.z);
  std::iota(order.begin(), order.end(), 0u);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[drawn(static_cast<unsigned>(i))]);
  for (const unsigned at : order) {
    blockIdx = {at % grid.x, at / grid.x % grid.y, at / grid.x / grid.y};
    run_block();
    if (!b.failure.empty()) break;
  }
  return b.failure;
}

}  // namespace twin
