#include "datasets/length_buckets.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/units.h"

namespace plimsoll::datasets {
namespace {

constexpr int64_t kMostCounts = 65'536;
constexpr int64_t kGrain = 16;            // finer lengths save little, and kernels work in such tiles
constexpr int64_t kMostCandidates = 512;  // times itself times the buckets: a few milliseconds

/// The multiples of the grain below the longest, and the longest.
std::vector<int64_t> candidates(int64_t longest) {
  const int64_t grain = kGrain * ceil_div(longest, kGrain * kMostCandidates);
  std::vector<int64_t> lengths;
  for (int64_t length = grain; length < longest; length += grain) lengths.push_back(length);
  lengths.push_back(longest);
  return lengths;
}

}  // namespace

LengthCounts::LengthCounts(int64_t longest)
    : longest_(longest),
      step_(ceil_div(longest, kMostCounts)),
      counts_(static_cast<size_t>(ceil_div(longest, step_))) {
  PLIMSOLL_CHECK(longest > 0, "no sequence is that short");
}

void LengthCounts::add(int64_t length, int64_t count) {
  PLIMSOLL_CHECK(length > 0 && length <= longest_, "a length beyond the longest");
  counts_[static_cast<size_t>((length - 1) / step_)] += count;
  num_sequences_ += count;
  num_tokens_ += length * count;
}

void LengthCounts::add_scaled(const LengthCounts& other, int64_t sequences) {
  PLIMSOLL_CHECK(other.longest_ == longest_, "counts of other lengths");
  if (other.num_sequences_ == 0) return;
  const double scale = static_cast<double>(sequences) / static_cast<double>(other.num_sequences_);
  for (size_t i = 0; i < counts_.size(); ++i) {
    const int64_t count = std::llround(static_cast<double>(other.counts_[i]) * scale);
    counts_[i] += count;
    num_sequences_ += count;
  }
  num_tokens_ += std::llround(static_cast<double>(other.num_tokens_) * scale);
}

int64_t LengthCounts::at_most(int64_t length) const {
  const auto end =
      length >= longest_ ? counts_.size() : static_cast<size_t>(std::max<int64_t>(0, length) / step_);
  int64_t sum = 0;
  for (size_t i = 0; i < end; ++i) sum += counts_[i];
  return sum;
}

std::vector<int64_t> choose_lengths(const LengthCounts& counts, int64_t count) {
  const std::vector<int64_t> lengths = candidates(counts.longest());
  const size_t n = lengths.size();
  std::vector<int64_t> below(n);
  for (size_t i = 0; i < n; ++i) below[i] = counts.at_most(lengths[i]);
  // best[i]: positions of all sequences up to lengths[i] where that is a bucket; one more bucket a round.
  std::vector<int64_t> best(n);
  for (size_t i = 0; i < n; ++i) best[i] = below[i] * lengths[i];
  std::vector<std::vector<size_t>> before;  // a round: the bucket below, n where none is
  for (int64_t round = 1; round < count; ++round) {
    std::vector<int64_t> better = best;
    std::vector<size_t>& from = before.emplace_back(n, n);
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < i; ++j)
        if (const int64_t cost = best[j] + (below[i] - below[j]) * lengths[i]; cost < better[i]) {
          better[i] = cost;
          from[i] = j;
        }
    best = std::move(better);
  }
  // A round that did not help a length leaves it as the round before found it.
  std::vector<int64_t> chosen = {lengths.back()};
  size_t at = n - 1;
  for (auto round = before.rbegin(); round != before.rend(); ++round) {
    if ((*round)[at] == n) continue;
    at = (*round)[at];
    chosen.push_back(lengths[at]);
  }
  std::reverse(chosen.begin(), chosen.end());
  return chosen;
}

std::vector<int64_t> even_lengths(int64_t longest, int64_t count) {
  std::vector<int64_t> lengths;
  for (int64_t i = 1; i < count; ++i) {
    const int64_t length = longest / count * i / kGrain * kGrain;
    if (length > (lengths.empty() ? 0 : lengths.back()) && length < longest) lengths.push_back(length);
  }
  lengths.push_back(longest);
  return lengths;
}

int64_t padded_positions(const LengthCounts& counts, std::span<const int64_t> lengths) {
  int64_t positions = 0, below = 0;
  for (const int64_t length : lengths) {
    const int64_t up_to = counts.at_most(length);
    positions += (up_to - below) * length;
    below = up_to;
  }
  return positions;
}

}  // namespace plimsoll::datasets
