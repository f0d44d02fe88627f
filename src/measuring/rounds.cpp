#include "measuring/rounds.h"

#include <algorithm>
#include <cmath>

#include "base/median.h"
#include "base/process.h"

namespace plimsoll::measuring {

OfRounds measure_in_rounds(const RoundPlan& plan,
                           const std::function<std::vector<double>(size_t item, int round)>& measure) {
  const auto now = [&] { return plan.now ? plan.now() : now_seconds(); };
  const double start = now();
  OfRounds all(plan.items);
  for (int round = 0; round < plan.rounds; ++round)
    for (size_t item = 0; item < plan.items; ++item) {
      if (now() - start > (round > 0 ? plan.seconds_for_rounds : plan.most_seconds)) return all;
      if (const std::vector<double> seconds = measure(item, round); !seconds.empty())
        all[item].push_back(median(seconds));
    }
  return all;
}

double spread_of(const OfRounds& rounds) {
  std::vector<double> spreads;
  for (const std::vector<double>& of : rounds) {
    const double middle = median(of);
    if (of.size() < 2 || middle <= 0) continue;
    double sum = 0;
    for (const double seconds : of) sum += std::abs(seconds - middle) / middle;
    spreads.push_back(sum / static_cast<double>(of.size() - 1));  // one of them is the median itself
  }
  return median(spreads);
}

double share_of_rounds(const std::vector<double>& all, const std::vector<double>& fewer) {
  std::vector<double> shares;
  for (size_t i = 0; i < std::min(all.size(), fewer.size()); ++i)
    if (fewer[i] > 0) shares.push_back(all[i] / fewer[i]);
  return median(shares);
}

double believable_share(double first, int64_t count, int64_t threads, bool scales,
                        const std::function<double()>& share) {
  constexpr int kTimes = 3;
  constexpr double kLeast = 1e-3;
  // Two threads that share a core reach little more than one of them, but more.
  constexpr double kMostOfScaling = 0.95;
  const double most = scales && count < threads ? kMostOfScaling : 1;
  double found = first;
  for (int i = 0; i < kTimes && !(found > 0 && found <= most); ++i) found = share();
  return std::clamp(found > 0 ? found : most, kLeast, most);
}

}  // namespace plimsoll::measuring
