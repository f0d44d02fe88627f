// One sweep over births and deaths.
#include "memory/live.h"

#include <algorithm>
#include <utility>

namespace plimsoll::memory {

namespace {

/// Changes of the live sum in order of time.
std::vector<std::pair<int64_t, int64_t>> changes(std::span<const Buffer> buffers) {
  std::vector<std::pair<int64_t, int64_t>> events;
  events.reserve(2 * buffers.size());
  for (const Buffer& b : buffers) {
    if (b.size == 0) continue;
    events.emplace_back(b.lower, b.size);
    events.emplace_back(b.upper, -b.size);
  }
  std::sort(events.begin(), events.end());
  return events;
}

}  // namespace

std::vector<int64_t> alive_at(std::span<const Buffer> buffers, int64_t time) {
  std::vector<int64_t> alive;
  for (size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].lower <= time && time < buffers[i].upper) alive.push_back(static_cast<int64_t>(i));
  std::stable_sort(alive.begin(), alive.end(), [&](int64_t a, int64_t b) {
    return buffers[static_cast<size_t>(a)].size > buffers[static_cast<size_t>(b)].size;
  });
  return alive;
}

LiveProfile live_profile(std::span<const Buffer> buffers) {
  LiveProfile profile;
  const auto events = changes(buffers);
  int64_t live = 0;
  for (size_t i = 0; i < events.size();) {
    const int64_t time = events[i].first;
    for (; i < events.size() && events[i].first == time; ++i) live += events[i].second;
    if (live == 0) continue;
    auto& spans = profile.spans;
    const int64_t end = events[i].first;  // something is alive, so a death follows
    if (!spans.empty() && spans.back().upper == time && spans.back().live_bytes == live)
      spans.back().upper = end;
    else
      spans.push_back({time, end, live});
    profile.peak_bytes = std::max(profile.peak_bytes, live);
  }
  for (const LiveSpan& span : profile.spans)
    if (span.live_bytes == profile.peak_bytes) profile.peaks.push_back(span);
  if (!profile.peaks.empty()) profile.alive_at_peak = alive_at(buffers, profile.peaks.front().lower);
  return profile;
}

}  // namespace plimsoll::memory
