// Curves of any length in as many points as a screen can show.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace plimsoll::reports {

/// Indices of at most 2 × `buckets` + 2 of the values, ascending: of each of `buckets` equal shares the least
/// and the greatest, so that spikes stay, and the first and the last of all. What is not finite is none of
/// them. No more values than that: all that are finite.
std::vector<size_t> downsample(std::span<const double> values, size_t buckets);

}  // namespace plimsoll::reports
