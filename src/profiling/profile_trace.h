// A profile as a trace, in Kineto's form of Chrome's: opens in Perfetto and in TensorBoard's profiler page.
#pragma once

#include <string>

#include "profiling/profile.h"

namespace plimsoll::profiling {

/// trace.json: lanes of steps with what the host did, ops, copies, the loader's threads and the checkpoint's,
/// and a counter of live bytes by class.
std::string profile_trace(const Profile& profile);

}  // namespace plimsoll::profiling
