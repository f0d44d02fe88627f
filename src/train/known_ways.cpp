#include "train/known_ways.h"

#include <algorithm>

namespace plimsoll::train {

const Planned* KnownWays::find(const Way& way) const {
  const auto found = std::ranges::find(ways_, way, &Planned::way);
  return found == ways_.end() ? nullptr : &*found;
}

void KnownWays::add(const Planned& planned) {
  ways_.push_back({planned.way, {}, planned.report, planned.facts});
}

}  // namespace plimsoll::train
