// A call of run() publishes one job; whoever is awake claims its tiles, and run() returns as soon as the last
// tile is done. A worker that sleeps, or that the system has put aside, is never waited for unless it holds a
// tile.
//
//   ticket, 64 bits:  | epoch: one per call | next tile, or kClosed while the job's fields change |
//
// A claim is a compare-and-swap of the whole ticket. So a worker that read an old job's fields, however late
// it comes, fails to claim: the epoch has moved on.
#include "backends/cpu/thread_pool.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/process.h"
#include "base/thread.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace plimsoll::cpu {
namespace {

constexpr uint64_t kTileMask = 0xffffffffu;
constexpr uint64_t kClosed = kTileMask;

// Longer than the gaps between the ops of a step, far shorter than a slice of the scheduler.
constexpr auto kSpinTime = std::chrono::microseconds(50);

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

// Returns once `value` differs from `old`: spins for kSpinTime, then sleeps on a futex until it is notified.
template <typename T>
void wait_while(const std::atomic<T>& value, T old) {
  const auto start = std::chrono::steady_clock::now();
  do {
    for (int i = 0; i < 16; ++i) {
      if (value.load(std::memory_order_acquire) != old) return;
      pause();
    }
  } while (std::chrono::steady_clock::now() - start < kSpinTime);
  while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
}

}  // namespace

struct ThreadPool::State {
  explicit State(int threads)
      : num_threads(threads), busy(static_cast<size_t>(threads)), taken(static_cast<size_t>(threads)) {}

  // What a tile takes is added before the tile counts as done: whoever waits for the last one sees all.
  // Nothing of it is left undone: what a tile throws waits until the last one is done, else the others would
  // have a job that is gone.
  void run_tile(const TileBody& job, int64_t tile, int thread) noexcept {
    const bool is_timed = counts.load(std::memory_order_relaxed);
    const double start = is_timed ? now_seconds() : 0;
    try {
      job(tile, thread);
    } catch (...) {
      if (!has_thrown.test_and_set(std::memory_order_relaxed)) thrown = std::current_exception();
    }
    if (is_timed) busy[static_cast<size_t>(thread)].seconds += now_seconds() - start;
  }
  void rethrow() {
    if (!has_thrown.test(std::memory_order_relaxed)) return;
    const std::exception_ptr first = std::exchange(thrown, nullptr);
    has_thrown.clear(std::memory_order_relaxed);
    std::rethrow_exception(first);
  }

  // Claims and runs tiles of the current job until none is left.
  void work(int thread) {
    for (uint64_t ticket = next.load(std::memory_order_acquire);;) {
      // Acquire pairs with run()'s release: fields of a later job imply that its closed ticket is seen too,
      // and the exchange below fails.
      const int64_t tiles = num_tiles.load(std::memory_order_acquire);
      const TileBody* job = body.load(std::memory_order_acquire);
      const auto tile = static_cast<int64_t>(ticket & kTileMask);
      if (tile >= tiles) return;
      if (!next.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel,
                                      std::memory_order_acquire))
        continue;
      run_tile(*job, tile, thread);
      if (left.fetch_sub(1, std::memory_order_acq_rel) == 1) left.notify_one();
      ticket = next.load(std::memory_order_acquire);
    }
  }

  void worker(int thread) {
    pthread_setname_np(pthread_self(), "compute");  // train/step_waits looks for it
    for (uint32_t seen = 0; !stop.load(std::memory_order_acquire);) {
      work(thread);
      wait_while(calls, seen);
      seen = calls.load(std::memory_order_acquire);
    }
  }

  void wake() {
    calls.fetch_add(1, std::memory_order_release);
    calls.notify_all();
  }

  const int num_threads;
  std::vector<Thread> workers;
  alignas(64) std::atomic<uint64_t> next{kClosed};
  std::atomic<int64_t> num_tiles{0};
  std::atomic<const TileBody*> body{nullptr};
  alignas(64) std::atomic<int32_t> left{0};    // tiles not yet done
  alignas(64) std::atomic<uint32_t> calls{0};  // what sleeping workers watch
  std::atomic<bool> stop{false};
  std::atomic<bool> counts{false};  // seconds in tiles
  struct alignas(64) Busy {
    double seconds = 0;
  };
  std::vector<Busy> busy;  // by thread
  std::vector<double> taken;
  std::atomic_flag has_thrown;  // a tile of the job at hand
  std::exception_ptr thrown;
};

ThreadPool::ThreadPool(int num_threads) : state_(std::make_unique<State>(num_threads)) {
  PLIMSOLL_CHECK(num_threads >= 1);
  // Where the system gives no more threads, those that there are claim all tiles: slower, the same bits.
  for (int t = 1; t < num_threads; ++t) {
    auto worker = Thread::start("computing", [s = state_.get(), t] { s->worker(t); });
    if (!worker) break;
    state_->workers.push_back(std::move(*worker));
  }
}

ThreadPool::~ThreadPool() {
  state_->stop.store(true, std::memory_order_release);
  state_->wake();
  state_->workers.clear();  // joins
}

int ThreadPool::num_threads() const { return state_->num_threads; }

void ThreadPool::run(int64_t num_tiles, TileBody body) {
  State& s = *state_;
  if (s.num_threads == 1 || num_tiles <= 1) {
    for (int64_t tile = 0; tile < num_tiles; ++tile) s.run_tile(body, tile, 0);
    return s.rethrow();
  }
  PLIMSOLL_CHECK(num_tiles < INT32_MAX);
  const uint64_t epoch = ((s.next.load(std::memory_order_relaxed) & ~kTileMask) + kTileMask + 1);
  s.next.store(epoch | kClosed, std::memory_order_release);
  s.num_tiles.store(num_tiles, std::memory_order_release);
  s.body.store(&body, std::memory_order_release);
  s.left.store(static_cast<int32_t>(num_tiles), std::memory_order_relaxed);
  s.next.store(epoch, std::memory_order_release);
  s.wake();
  s.work(0);
  for (int32_t left; (left = s.left.load(std::memory_order_acquire)) != 0;) wait_while(s.left, left);
  s.rethrow();
}

void ThreadPool::count_seconds(bool on) {
  for (State::Busy& busy : state_->busy) busy.seconds = 0;
  state_->counts = on;
}

std::span<const double> ThreadPool::take_seconds() {
  State& s = *state_;
  if (!s.counts.load(std::memory_order_relaxed)) return {};
  for (size_t t = 0; t < s.busy.size(); ++t) s.taken[t] = std::exchange(s.busy[t].seconds, 0);
  return s.taken;
}

}  // namespace plimsoll::cpu
