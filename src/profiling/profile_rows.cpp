#include "profiling/profile_rows.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace plimsoll::profiling {

std::vector<ProfileRow> profile_rows(const Profile& profile, ProfileBy by) {
  using Key = std::tuple<std::string, std::string, std::string>;
  const auto key_of = [by](const OpFacts& f) -> Key {
    switch (by) {
      case ProfileBy::kOp:
        return {f.op, "", ""};
      case ProfileBy::kLayer:
        return {"", f.layer, ""};
      case ProfileBy::kShape:
        return {f.op, "", f.dims};
      case ProfileBy::kOpAndLayer:
        break;
    }
    return {f.op, f.layer, ""};
  };
  std::map<Key, ProfileRow> sums;
  for (const ProfiledStep& step : profile.steps)
    for (const OpRun& run : step.ops) {
      const OpFacts& f = profile.facts[run.op];
      ProfileRow& row = sums[key_of(f)];
      row.calls += 1;
      row.seconds += run.seconds;
      row.flops += f.flops;
      row.bytes += f.bytes;
      row.estimated_seconds += f.estimated_seconds;
      row.busiest_seconds += run.busiest_seconds;
      row.mean_seconds += run.mean_seconds;
    }
  const auto steps = static_cast<double>(std::max<size_t>(1, profile.steps.size()));
  std::vector<ProfileRow> rows;
  for (auto& [key, sum] : sums) {
    ProfileRow& row = rows.emplace_back(sum);
    std::tie(row.op, row.layer, row.shape) = key;
    for (double* figure : {&row.calls, &row.seconds, &row.flops, &row.bytes, &row.estimated_seconds,
                           &row.busiest_seconds, &row.mean_seconds})
      *figure /= steps;
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const ProfileRow& a, const ProfileRow& b) { return a.seconds > b.seconds; });
  return rows;
}

io::Tree profile_ops(const Profile& profile) {
  io::Tree list = io::Tree::list();
  for (const ProfileRow& row : profile_rows(profile, ProfileBy::kOpAndLayer)) {
    io::Tree& op = list.items.emplace_back(io::Tree::map({{"op", io::Tree::of(row.op)},
                                                          {"layer", io::Tree::of(row.layer)},
                                                          {"calls", io::Tree::of(row.calls)},
                                                          {"seconds", io::Tree::of(row.seconds)},
                                                          {"flops", io::Tree::of(row.flops)},
                                                          {"bytes", io::Tree::of(row.bytes)}}));
    op.set("estimated_seconds", io::Tree::of(row.estimated_seconds));
    if (row.imbalance() > 0) op.set("imbalance", io::Tree::of(row.imbalance()));
  }
  return list;
}

}  // namespace plimsoll::profiling
