#include "strategy/split_choices.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace plimsoll::strategy {

std::vector<settings::BatchSplit> candidate_splits(const settings::TrainingSettings& training, bool whole) {
  if (const auto fixed = settings::fixed_batch_split(training)) return {*fixed};
  if (whole) return {{training.global_batch_size, 1}};
  std::vector<settings::BatchSplit> splits;
  for (int64_t micro = training.global_batch_size; micro >= 1; --micro)
    if (training.global_batch_size % micro == 0)
      splits.push_back({micro, training.global_batch_size / micro});
  return splits;
}

bool keeps_batch_whole(const RunScope& scope) {
  return scope.options.purpose == Purpose::kTrain && scope.prepared.model->couples_micro_batch();
}

std::vector<settings::BatchSplit> spread_splits(const std::vector<settings::BatchSplit>& splits) {
  constexpr size_t kMost = 12;
  if (splits.size() <= kMost) return splits;
  const auto log_of = [](const settings::BatchSplit& s) {
    return std::log(static_cast<double>(s.micro_batch_size));
  };
  const double first = log_of(splits.front()), last = log_of(splits.back());
  std::vector<settings::BatchSplit> spread = {splits.front()};
  for (const settings::BatchSplit& split : splits) {
    const auto at = static_cast<double>(spread.size());
    const double next = std::lerp(first, last, at / static_cast<double>(kMost - 1));
    if (spread.size() + 1 < kMost && log_of(split) <= next) spread.push_back(split);
  }
  if (!(spread.back() == splits.back())) spread.push_back(splits.back());
  return spread;
}

std::vector<bool> worth_planning(const std::vector<SplitTime>& splits, double margin) {
  std::vector<size_t> order(splits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return splits[i].split.micro_batch_size; });
  std::vector<bool> worth(splits.size(), false);
  double fastest = std::numeric_limits<double>::infinity();
  for (const size_t i : order) {
    worth[i] = splits[i].split.grad_accum_steps == 1 || splits[i].seconds < (1 - margin) * fastest;
    if (worth[i]) fastest = std::min(fastest, splits[i].seconds);
  }
  return worth;
}

}  // namespace plimsoll::strategy
