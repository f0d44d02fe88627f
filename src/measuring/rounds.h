// Several things measured in turns, round after round: what one moment gives all of them differs less from
// another moment's than what one of them got in its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace plimsoll::measuring {

struct RoundPlan {
  size_t items = 0;
  int rounds = 1;
  /// Rounds behind the first end after so many seconds.
  double seconds_for_rounds = 0;
  /// Nothing more is begun behind it: items that were not come to have no rounds.
  double most_seconds = 1e9;
  std::function<double()> now = {};  ///< seconds; empty: of the system
};

/// By item, what each round that came to it gave.
using OfRounds = std::vector<std::vector<double>>;

/// `measure(item)` gives the seconds of several runs, of which a round's median counts.
OfRounds measure_in_rounds(const RoundPlan& plan,
                           const std::function<std::vector<double>(size_t item, int round)>& measure);

/// The share by which the rounds of an item differ from their median, in the mean over its rounds; of all
/// items that have several the median, 0 where none has.
double spread_of(const OfRounds& rounds);

/// What one thread does in seconds against all, as the median over the rounds that have both of what each
/// says by itself: what a moment took from both is in neither. 0 where no round has both.
double share_of_rounds(const std::vector<double>& all, const std::vector<double>& fewer);

/// `share()` measures the part of all threads' rate that `count` of `threads` reach. One that as few of them
/// cannot is measured again, three times at most, and then taken for what is the most that can be.
/// `scales` false: of what one thread can have all of, as memory's bandwidth.
double believable_share(double first, int64_t count, int64_t threads, bool scales,
                        const std::function<double()>& share);

}  // namespace plimsoll::measuring
