// Turns in which the tasks of attention's backward pass add to a gradient that they share: one counter per
// block of queries and head (passed on by granule) and per granule of keys and KV head (passed on by query
// head). The order is fixed, so the sums' bits are, and no task needs a partial sum of its own in memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>

#include "backends/cpu/kernels/attention/attention.h"
#include "backends/cpu/kernels/attention/attention_layout.h"

namespace plimsoll::cpu {

class Turns {
 public:
  using Counter = std::atomic<int32_t>;

  static int64_t bytes(const AttentionShape& s) { return count(s) * int64_t{sizeof(Counter)}; }

  /// Starts every counter at 0 in `memory`, which has bytes(s).
  Turns(const AttentionShape& s, std::byte* memory)
      : shape_(s), counters_(reinterpret_cast<Counter*>(memory)) {
    for (int64_t i = 0; i < count(s); ++i) std::construct_at(counters_ + i, 0);
  }

  [[nodiscard]] Counter& of_queries(int64_t b, int64_t head, int64_t block) const {
    return counters_[(b * shape_.num_heads + head) * num_blocks(shape_.tokens) + block];
  }
  [[nodiscard]] Counter& of_keys(int64_t b, int64_t kv_head, int64_t granule) const {
    return counters_[shape_.batch * shape_.num_heads * num_blocks(shape_.tokens) +
                     (b * shape_.num_kv_heads + kv_head) * num_granules(shape_.tokens) + granule];
  }

 private:
  static int64_t count(const AttentionShape& s) {
    return s.batch * (s.num_heads * num_blocks(s.tokens) + s.num_kv_heads * num_granules(s.tokens));
  }
  AttentionShape shape_;
  Counter* counters_;
};

/// Returns when it is `turn`'s turn. Waits are short: whoever has it was claimed earlier and is at work.
inline void wait_for_turn(const Turns::Counter& counter, int64_t turn) {
  while (counter.load(std::memory_order_acquire) != static_cast<int32_t>(turn)) std::this_thread::yield();
}
inline void pass_turn(Turns::Counter& counter, int64_t next) {
  counter.store(static_cast<int32_t>(next), std::memory_order_release);
}

}  // namespace plimsoll::cpu
