// The orders that greedy fills follow.
#include "memory/greedy.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace plimsoll::memory {

namespace {

double key_of(const Item& item, int64_t load, Key key) {
  const double lifetime = item.lifetime;
  switch (key) {
    case Key::kLoad:
      return static_cast<double>(load);
    case Key::kLifetime:
      return lifetime;
    case Key::kArea:
      return lifetime * static_cast<double>(item.size);
    case Key::kSize:
      return static_cast<double>(item.size);
    case Key::kEarly:
      return -item.first;
    case Key::kLate:
      return item.last;
  }
  return 0;
}

}  // namespace

// By a sparse table: row k holds the busiest of each 2^k neighbours, two of which cover any range.
std::vector<int32_t> peak_sections(const Problem& problem) {
  const auto& load = problem.load;
  const auto busier = [&](int32_t a, int32_t b) { return load[at(b)] > load[at(a)] ? b : a; };
  std::vector<std::vector<int32_t>> table(1, std::vector<int32_t>(load.size()));
  std::iota(table[0].begin(), table[0].end(), 0);
  for (size_t width = 1; 2 * width <= load.size(); width *= 2) {
    const auto& half = table.back();
    std::vector<int32_t> whole(load.size() - 2 * width + 1);
    for (size_t s = 0; s < whole.size(); ++s) whole[s] = busier(half[s], half[s + width]);
    table.push_back(std::move(whole));
  }
  std::vector<int32_t> peak;
  peak.reserve(problem.items.size());
  for (const Item& item : problem.items) {
    const auto level = static_cast<size_t>(std::bit_width(static_cast<uint32_t>(item.last - item.first)) - 1);
    const auto& row = table[level];
    peak.push_back(busier(row[at(item.first)], row[at(item.last) - (size_t{1} << level)]));
  }
  return peak;
}

std::vector<int32_t> order_of(std::span<const int32_t> rank) {
  std::vector<int32_t> order(rank.size());
  for (size_t i = 0; i < rank.size(); ++i) order[at(rank[i])] = static_cast<int32_t>(i);
  return order;
}

std::vector<int32_t> rank_by(const Problem& problem, std::span<const Key> keys) {
  const size_t n = problem.items.size();
  const std::vector<int32_t> peaks = peak_sections(problem);
  std::vector<double> values(n * keys.size());
  for (size_t i = 0; i < n; ++i)
    for (size_t k = 0; k < keys.size(); ++k)
      values[i * keys.size() + k] = key_of(problem.items[i], problem.load[at(peaks[i])], keys[k]);
  std::vector<int32_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const double* x = &values[at(a) * keys.size()];
    const double* y = &values[at(b) * keys.size()];
    for (size_t k = 0; k < keys.size(); ++k)
      if (x[k] != y[k]) return x[k] > y[k];
    return a < b;
  });
  std::vector<int32_t> rank(n);
  for (size_t i = 0; i < n; ++i) rank[at(order[i])] = static_cast<int32_t>(i);
  return rank;
}

}  // namespace plimsoll::memory
