// A profile's ops as a table: by op, layer or the shapes of what they read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/tree.h"
#include "profiling/profile.h"

namespace plimsoll::profiling {

enum class ProfileBy : uint8_t { kOpAndLayer, kOp, kLayer, kShape };
inline constexpr std::string_view kProfileByNames[] = {"op_and_layer", "op", "layer", "shape"};

/// Means a step.
struct ProfileRow {
  std::string op = {}, layer = {}, shape = {};  ///< empty: over several
  double calls = 0, seconds = 0, flops = 0, bytes = 0;
  double estimated_seconds = 0;                  ///< by the machine's profile
  double busiest_seconds = 0, mean_seconds = 0;  ///< of the threads; 0: not known
  /// The longest thread's time over the threads' mean: 1 where they all work alike; 0: not known.
  [[nodiscard]] double imbalance() const { return mean_seconds > 0 ? busiest_seconds / mean_seconds : 0; }
};
/// The most seconds first.
std::vector<ProfileRow> profile_rows(const Profile& profile, ProfileBy by);

/// ops.json: by op and layer.
io::Tree profile_ops(const Profile& profile);

}  // namespace plimsoll::profiling
