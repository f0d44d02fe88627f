// Decides how a queue treats a piece of work, so that whatever relies on luck in the order of queues fails.
// Nothing that it does is forbidden by the device's contract.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

#include "ir/graph.h"

namespace plimsoll::discrete {

/// What happens to one piece of work before it runs.
struct Treatment {
  /// Held until another queue or the host waits for it, or for something behind it; at most kMostHeld.
  bool held = false;
  /// Its queue starves: held even while the host waits, until another queue does; at most kMostStarved.
  bool starved = false;
  std::chrono::microseconds pause{0};  ///< whoever waits
};

/// A copy cut in pieces: [0] to [1], [1] to [2], …; 0 and the copy's size are the ends.
struct Pieces {
  static constexpr size_t kMost = 6;
  size_t count = 1;
  std::array<int64_t, kMost + 1> cuts{};
  std::array<uint8_t, kMost> order{};                     ///< in which they are copied
  std::array<std::chrono::microseconds, kMost> pauses{};  ///< before each
};

inline constexpr std::chrono::microseconds kMostHeld{1000};
inline constexpr std::chrono::microseconds kMostStarved{200};

/// Determinism: every answer is a function of the seed, the queue, the number of the work in its queue and,
/// for pieces, the size.
class Adversary {
 public:
  /// No seed: nothing is held, delayed or cut.
  explicit Adversary(std::optional<uint64_t> seed) : seed_(seed) {}
  [[nodiscard]] bool is_active() const { return seed_.has_value(); }
  [[nodiscard]] Treatment treat(ir::Queue queue, uint64_t number) const;
  [[nodiscard]] Pieces cut(ir::Queue queue, uint64_t number, int64_t bytes) const;

 private:
  std::optional<uint64_t> seed_;
};

}  // namespace plimsoll::discrete
