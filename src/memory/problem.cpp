// Reduces times and bytes to sections and units.
#include "memory/problem.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "memory/live.h"

namespace plimsoll::memory {

namespace {

/// Fills first and last: a section closes at a death that follows a birth.
void assign_sections(std::span<const Buffer> buffers, Problem& problem) {
  std::vector<std::tuple<int64_t, bool, int32_t>> events;  // deaths (false) sort first at one time
  events.reserve(2 * problem.items.size());
  for (size_t i = 0; i < problem.items.size(); ++i) {
    const Buffer& b = buffers[static_cast<size_t>(problem.source[i])];
    events.emplace_back(b.lower, true, static_cast<int32_t>(i));
    events.emplace_back(b.upper, false, static_cast<int32_t>(i));
  }
  std::sort(events.begin(), events.end());
  int32_t section = 0;
  bool open = false;
  for (const auto& [time, born, i] : events) {
    Item& item = problem.items[static_cast<size_t>(i)];
    if (born) {
      item.first = section;
      open = true;
    } else {
      section += open;
      open = false;
      item.last = section;
    }
  }
  std::vector<int64_t> change(static_cast<size_t>(section) + 1, 0);
  for (const Item& item : problem.items) {
    change[static_cast<size_t>(item.first)] += item.size;
    change[static_cast<size_t>(item.last)] -= item.size;
  }
  problem.load.resize(static_cast<size_t>(section));
  std::partial_sum(change.begin(), change.end() - 1, problem.load.begin());
}

}  // namespace

Problem make_problem(std::span<const Buffer> buffers) {
  Problem problem;
  int64_t size_gcd = 0;
  for (const Buffer& b : buffers) size_gcd = std::gcd(size_gcd, b.size);
  if (size_gcd == 0) return problem;
  // Where each alignment divides every size or is a multiple of their gcd, justified offsets are multiples of
  // that gcd anyway: an alignment that divides it asks for nothing.
  const bool nested = std::all_of(buffers.begin(), buffers.end(), [&](const Buffer& b) {
    return size_gcd % b.alignment == 0 || b.alignment % size_gcd == 0;
  });
  const auto effective = [&](const Buffer& b) {
    return nested && size_gcd % b.alignment == 0 ? size_gcd : b.alignment;
  };
  int64_t unit = 0;
  for (const Buffer& b : buffers)
    if (b.size > 0) unit = std::gcd(unit, effective(b));
  problem.unit = unit;
  int64_t max_padding = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& b = buffers[i];
    if (b.size == 0) continue;
    const int64_t size = (b.size - 1) / unit + 1;
    max_padding = std::max(max_padding, size * unit - b.size);
    problem.items.push_back({.size = size,
                             .alignment = effective(b) / unit,
                             .lifetime = static_cast<double>(b.upper) - static_cast<double>(b.lower)});
    problem.aligned |= problem.items.back().alignment != 1;
    problem.source.push_back(static_cast<int64_t>(i));
  }
  assign_sections(buffers, problem);
  problem.bound = *std::max_element(problem.load.begin(), problem.load.end());
  // Each offset is a multiple of the unit, so all but the topmost buffer fill whole units.
  problem.bound_bytes = std::max(problem.bound * unit - max_padding, live_profile(buffers).peak_bytes);
  return problem;
}

}  // namespace plimsoll::memory
