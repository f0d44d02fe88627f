#include "backends/discrete/adversary.h"

#include <algorithm>
#include <utility>

namespace plimsoll::discrete {
namespace {

/// SplitMix64 (Steele, Lea, Flood 2014): a short sequence for each (seed, queue, number, purpose).
class Draws {
 public:
  Draws(uint64_t seed, ir::Queue queue, uint64_t number, uint64_t purpose)
      : state_(mixed(seed) ^ mixed(number * 4 + static_cast<uint64_t>(queue)) ^ mixed(~purpose)) {}
  /// Of [0, end).
  uint64_t below(uint64_t end) { return next() % end; }
  bool one_in(uint64_t n) { return below(n) == 0; }
  std::chrono::microseconds microseconds(uint64_t end) {
    return std::chrono::microseconds(static_cast<int64_t>(below(end)));
  }

 private:
  static uint64_t mixed(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
  uint64_t next() { return mixed(state_ += 0x9e3779b97f4a7c15U); }
  uint64_t state_;
};

}  // namespace

// Copies are few and kernels many, so what is rare among kernels is common among copies: a step is troubled a
// few dozen times and not slowed down much (measured: 3,000 kernels by some 25 ms).
Treatment Adversary::treat(ir::Queue queue, uint64_t number) const {
  Treatment treatment;
  if (!seed_) return treatment;
  const bool computes = queue == ir::Queue::kCompute;
  Draws draws(*seed_, queue, number, 1);
  treatment.held = draws.one_in(computes ? 16 : 3);
  treatment.starved = draws.one_in(computes ? 64 : 12);
  if (draws.one_in(computes ? 32 : 4)) treatment.pause = draws.microseconds(60);
  return treatment;
}

Pieces Adversary::cut(ir::Queue queue, uint64_t number, int64_t bytes) const {
  Pieces pieces;
  pieces.cuts[1] = bytes;
  if (!seed_) return pieces;
  Draws draws(*seed_, queue, number, 2);
  if (bytes < 2 || draws.one_in(2)) return pieces;
  pieces.count = 2 + draws.below(Pieces::kMost - 1);
  for (size_t i = 1; i < pieces.count; ++i)
    pieces.cuts[i] = static_cast<int64_t>(draws.below(static_cast<uint64_t>(bytes) + 1));
  pieces.cuts[pieces.count] = bytes;
  std::sort(pieces.cuts.begin() + 1, pieces.cuts.begin() + static_cast<int64_t>(pieces.count));
  for (size_t i = 0; i < pieces.count; ++i) {
    pieces.order[i] = static_cast<uint8_t>(i);
    std::swap(pieces.order[i], pieces.order[draws.below(i + 1)]);
    if (draws.one_in(4)) pieces.pauses[i] = draws.microseconds(30);
  }
  return pieces;
}

}  // namespace plimsoll::discrete
