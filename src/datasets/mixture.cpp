#include "datasets/mixture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/units.h"
#include "datasets/permutation.h"

namespace plimsoll::datasets {
namespace {

constexpr int64_t kLeastBlock = 1024, kMostBlock = 65'536;
constexpr double kGoodEnough = 0.01;  // of a source's share, which rounding may take or give

/// Counts that add up to `block` in the proportion of the shares: rounded down, and what is missing goes to
/// the largest remainders (of equal ones the earlier).
std::vector<int64_t> largest_remainders(const std::vector<double>& shares, int64_t block) {
  std::vector<int64_t> counts(shares.size());
  std::vector<double> rests(shares.size());
  for (size_t s = 0; s < shares.size(); ++s) {
    const double exact = shares[s] * static_cast<double>(block);
    counts[s] = static_cast<int64_t>(std::floor(exact));
    rests[s] = exact - std::floor(exact);
  }
  std::vector<size_t> order(shares.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rests[a] > rests[b]; });
  int64_t missing = block - std::accumulate(counts.begin(), counts.end(), int64_t{0});
  for (size_t i = 0; missing > 0; i = (i + 1) % order.size(), --missing) ++counts[order[i]];
  return counts;
}

bool good_enough(const std::vector<double>& shares, const std::vector<int64_t>& counts, int64_t block) {
  for (size_t s = 0; s < shares.size(); ++s) {
    const double exact = shares[s] * static_cast<double>(block);
    if (counts[s] < 1 || std::abs(static_cast<double>(counts[s]) - exact) > kGoodEnough * exact) return false;
  }
  return true;
}

Error bad_weight(std::span<const MixtureSource> sources, size_t source, std::string what) {
  return {ErrorCode::kInvalidArgument, fmt::format("the weight of source {} {}", source + 1, what),
          sources[source].name, "weights are positive numbers; only their ratios matter"};
}

Result<std::vector<double>> shares_of(std::span<const MixtureSource> sources) {
  double largest = 0;
  for (size_t s = 0; s < sources.size(); ++s) {
    if (!(sources[s].weight > 0) || !std::isfinite(sources[s].weight))
      return bad_weight(sources, s, fmt::format("is {}", sources[s].weight));
    largest = std::max(largest, sources[s].weight);
  }
  double sum = 0;
  std::vector<double> shares;
  for (const MixtureSource& source : sources) {
    shares.push_back(source.weight / largest);  // the sum of the weights themselves may be infinite
    sum += shares.back();
  }
  for (double& share : shares) share /= sum;
  return shares;
}

}  // namespace

Result<Mixture> Mixture::create(std::span<const MixtureSource> sources, uint64_t seed, bool shuffle) {
  PLIMSOLL_CHECK(!sources.empty(), "a mixture of nothing");
  for (const MixtureSource& source : sources)
    PLIMSOLL_CHECK(source.num_sequences > 0, "a source without sequences");
  PLIMSOLL_ASSIGN(const std::vector<double> shares, shares_of(sources));
  int64_t block = kLeastBlock;
  std::vector<int64_t> counts = largest_remainders(shares, block);
  while (block < kMostBlock && !good_enough(shares, counts, block)) {
    block *= 2;
    counts = largest_remainders(shares, block);
  }
  for (size_t s = 0; s < counts.size(); ++s)
    if (counts[s] < 1)
      return bad_weight(sources, s, fmt::format("gives it less than one sequence in {}", kMostBlock));
  return Mixture({sources.begin(), sources.end()}, std::move(counts), seed, shuffle);
}

Mixture::Mixture(std::vector<MixtureSource> sources, std::vector<int64_t> counts, uint64_t seed, bool shuffle)
    : sources_(std::move(sources)), counts_(std::move(counts)), seed_(seed), shuffle_(shuffle) {
  // Each source's places evenly over the block: its k-th of c at (k + 1/2) / c.
  for (size_t s = 0; s < counts_.size(); ++s)
    for (int64_t k = 0; k < counts_[s]; ++k)
      pattern_.push_back({static_cast<int32_t>(s), static_cast<int32_t>(k)});
  const auto place = [&](const Slot& slot, const Slot& other) {
    return (2 * int64_t{slot.rank} + 1) * counts_[static_cast<size_t>(other.source)];
  };
  std::stable_sort(pattern_.begin(), pattern_.end(),
                   [&](const Slot& a, const Slot& b) { return place(a, b) < place(b, a); });
}

MixturePlace Mixture::at(int64_t position) const {
  PLIMSOLL_CHECK(position >= 0, "a position before the start");
  const int64_t block = position / block_size();
  int64_t slot = position % block_size();
  if (shuffle_) slot = Permutation(block_size(), seed_, static_cast<uint64_t>(block)).at(slot);
  const Slot& taken = pattern_[static_cast<size_t>(slot)];
  const auto source = static_cast<size_t>(taken.source);
  const int64_t ordinal = block * counts_[source] + taken.rank;
  // Sources of one size must not go through it in the same order.
  const uint64_t own_seed = seed_ + 0x9e3779b97f4a7c15 * (source + 1);
  const BatchOrder order(sources_[source].num_sequences, own_seed, shuffle_);
  return {.source = taken.source, .index = order.at(ordinal), .epoch = order.epoch_of(ordinal)};
}

int64_t Mixture::positions_for_all() const {
  int64_t last_block = 0;
  for (size_t s = 0; s < sources_.size(); ++s)
    last_block = std::max(last_block, (sources_[s].num_sequences - 1) / counts_[s]);
  // Within it, the last place at which some source goes through a sequence for the first time.
  const Permutation order(block_size(), seed_, static_cast<uint64_t>(last_block));
  int64_t most = 0;
  for (int64_t i = 0; i < block_size(); ++i) {
    const Slot& slot = pattern_[static_cast<size_t>(shuffle_ ? order.at(i) : i)];
    const auto source = static_cast<size_t>(slot.source);
    if (last_block * counts_[source] + slot.rank < sources_[source].num_sequences) most = i + 1;
  }
  return last_block * block_size() + most;
}

}  // namespace plimsoll::datasets
