// A sweep over time. The byte ranges alive at once are disjoint, so in an ordered map by offset a newcomer
// can only hit its two neighbours.
#include "memory/validator.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

namespace plimsoll::memory {

namespace {

Error conflict(std::string what, size_t buffer) {
  return Error{.what = std::move(what),
               .where = fmt::format("buffer {}", buffer),
               .hint = "this is a bug in the planner: please report the buffers"};
}

std::string describe(size_t i, const Buffer& b, int64_t offset) {
  return fmt::format("buffer {} [{}, {}) at bytes {}..{}", i, b.lower, b.upper, offset, offset + b.size);
}

Status check_each(std::span<const Buffer> buffers, const Placement& placement) {
  int64_t top = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const int64_t offset = placement.offsets[i];
    const Buffer& b = buffers[i];
    if (offset < 0) return conflict(fmt::format("offset {} is negative", offset), i);
    if (b.size < 0 || b.lower >= b.upper || b.alignment < 1) return conflict("not a buffer", i);
    if (offset % b.alignment != 0)
      return conflict(fmt::format("offset {} is not a multiple of its alignment {}", offset, b.alignment), i);
    if (offset > std::numeric_limits<int64_t>::max() - b.size) return conflict("the end overflows", i);
    if (b.size > 0) top = std::max(top, offset + b.size);
  }
  if (top != placement.height)
    return Error{.what = fmt::format("height {} stated, {} found", placement.height, top)};
  if (placement.height < placement.lower_bound)
    return Error{.what = fmt::format("height {} below its lower bound {}", top, placement.lower_bound)};
  return Ok{};
}

}  // namespace

Status validate(std::span<const Buffer> buffers, const Placement& placement) {
  if (placement.offsets.size() != buffers.size())
    return Error{.what = fmt::format("{} offsets for {} buffers", placement.offsets.size(), buffers.size())};
  PLIMSOLL_TRY(check_each(buffers, placement));

  // (time, born, buffer): at one time deaths come first, for lifetimes are half open.
  std::vector<std::tuple<int64_t, bool, size_t>> events;
  events.reserve(2 * buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].size == 0) continue;
    events.emplace_back(buffers[i].lower, true, i);
    events.emplace_back(buffers[i].upper, false, i);
  }
  std::sort(events.begin(), events.end());

  std::map<int64_t, size_t> live;  // offset -> buffer, ranges disjoint
  for (const auto& [time, born, buffer] : events) {
    const size_t i = buffer;
    const int64_t offset = placement.offsets[i];
    if (!born) {
      live.erase(offset);
      continue;
    }
    const auto hits = [&](size_t j) {
      return conflict("overlaps " + describe(j, buffers[j], placement.offsets[j]) + ": " +
                          describe(i, buffers[i], offset),
                      i);
    };
    const auto next = live.lower_bound(offset);
    if (next != live.end() && next->first < offset + buffers[i].size) return hits(next->second);
    if (next != live.begin()) {
      const auto below = std::prev(next);
      if (below->first + buffers[below->second].size > offset) return hits(below->second);
    }
    live.emplace(offset, i);
  }
  return Ok{};
}

}  // namespace plimsoll::memory
