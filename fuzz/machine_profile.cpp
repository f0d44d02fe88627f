// A machine's profile, as calibrate keeps it in a folder that anything may write to: what is taken is a
// profile that plans can go by, and can be kept again.
#include "planner/cost/machine_profile.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"

using plimsoll::planner::MachineProfile;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto profile = plimsoll::planner::parse_profile({reinterpret_cast<const char*>(data), size});
  if (!profile) return 0;
  const MachineProfile& p = *profile;
  PLIMSOLL_CHECK(p.threads >= 1 && p.context_bytes <= p.memory_bytes, "no machine");
  for (const double rate : p.product_flops) PLIMSOLL_CHECK(std::isfinite(rate) && rate > 0);
  for (const double rate : {p.vector_flops, p.cache_bandwidth, p.memory_bandwidth, p.optimizer_bandwidth})
    PLIMSOLL_CHECK(std::isfinite(rate) && rate > 0);
  for (const auto& point : p.points)
    PLIMSOLL_CHECK(point.rate > 0 && std::ranges::min(point.extents) >= 1, point.kind);
  for (const auto& shares : p.fewer_threads)
    PLIMSOLL_CHECK(shares.threads >= 1 && shares.threads < p.threads && shares.products > 0);
  const auto text = plimsoll::planner::profile_json(p);
  const auto back = plimsoll::planner::parse_profile(text);
  PLIMSOLL_CHECK(back.ok() && plimsoll::planner::profile_json(*back) == text, "it does not read back");
  return 0;
}
