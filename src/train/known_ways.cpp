#include "train/known_ways.h"

#include <algorithm>

namespace plimsoll::train {

namespace {

const Planned* find_in(const std::vector<Planned>& list, const Way& way) {
  const auto found = std::ranges::find(list, way, &Planned::way);
  return found == list.end() ? nullptr : &*found;
}

/// Without its programs.
Planned light(const Planned& planned) { return {planned.way, {}, planned.report, planned.facts}; }

}  // namespace

const Planned* KnownWays::find(const Way& way) const { return find_in(ways_, way); }
void KnownWays::add(const Planned& planned) { ways_.push_back(light(planned)); }
const Planned* KnownWays::find_sketch(const Way& way, bool with_facts) const {
  const auto is_it = [&](const Planned& p) { return p.way == way && (!with_facts || p.facts != nullptr); };
  const auto found = std::ranges::find_if(sketches_, is_it);
  return found == sketches_.end() ? nullptr : &*found;
}
void KnownWays::add_sketch(const Planned& sketched) { sketches_.push_back(light(sketched)); }

}  // namespace plimsoll::train
