#include "backends/cpu/thread_pool.h"

#include <immintrin.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/check.h"

namespace plimsoll::cpu {

// A call is announced by a new epoch. Each worker joins each epoch once, claims tiles until none is left and
// then reports; run() returns when every worker has reported, so `body` never outlives its call.
struct ThreadPool::State {
  int num_threads = 1;
  std::vector<std::thread> workers;
  alignas(64) std::atomic<uint32_t> epoch{0};
  alignas(64) std::atomic<int64_t> next{0};
  alignas(64) std::atomic<int> busy{0};
  std::atomic<bool> stop{false};
  int64_t num_tiles = 0;
  const TileBody* body = nullptr;

  void work(int thread) {
    for (int64_t tile; (tile = next.fetch_add(1, std::memory_order_relaxed)) < num_tiles;) (*body)(tile, thread);
  }
};

namespace {

// About 50 microseconds of pauses: longer than the gaps between the ops of a step, far shorter than a scheduler slice.
constexpr int kSpins = 2000;

template <typename T>
void wait_while(std::atomic<T>& value, T old) {
  for (int i = 0; i < kSpins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    _mm_pause();
  }
  while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(int num_threads) : state_(std::make_unique<State>()) {
  PLIMSOLL_CHECK(num_threads >= 1);
  state_->num_threads = num_threads;
  for (int t = 1; t < num_threads; ++t)
    state_->workers.emplace_back([s = state_.get(), t] {
      for (uint32_t seen = 0;;) {
        wait_while(s->epoch, seen);
        seen = s->epoch.load(std::memory_order_acquire);
        if (s->stop.load(std::memory_order_relaxed)) return;
        s->work(t);
        if (s->busy.fetch_sub(1, std::memory_order_acq_rel) == 1) s->busy.notify_one();
      }
    });
}

ThreadPool::~ThreadPool() {
  state_->stop = true;
  state_->epoch.fetch_add(1, std::memory_order_release);
  state_->epoch.notify_all();
  for (auto& w : state_->workers) w.join();
}

int ThreadPool::num_threads() const { return state_->num_threads; }

void ThreadPool::run(int64_t num_tiles, TileBody body) {
  State& s = *state_;
  if (s.num_threads == 1 || num_tiles == 1) {
    for (int64_t tile = 0; tile < num_tiles; ++tile) body(tile, 0);
    return;
  }
  s.num_tiles = num_tiles;
  s.body = &body;
  s.next.store(0, std::memory_order_relaxed);
  s.busy.store(s.num_threads - 1, std::memory_order_relaxed);
  s.epoch.fetch_add(1, std::memory_order_release);
  s.epoch.notify_all();
  s.work(0);
  for (int left; (left = s.busy.load(std::memory_order_acquire)) != 0;) wait_while(s.busy, left);
}

}  // namespace plimsoll::cpu
