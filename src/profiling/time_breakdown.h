// Attributes each second of measured step time to exactly one category: each second in one place.
#pragma once

#include <array>
#include <string>

#include "profiling/profile.h"

namespace plimsoll::profiling {

enum Place : uint8_t {
  kStorage,
  kCold,
  kPrepare,
  kDecoding,
  kAugmenting,
  kCheckpoints,
  kTaken,
  kIdle,
  kHostWork,
  kCopies,
  kFewRows,
  kBelowRate,
  kFewThreads,
  kOptimizer,
  kRecompute,
  kPadding,
  kProducts,  ///< the first of the work itself
  kMemoryBound,
  kHiddenCopies,
  kPlaces
};
inline bool is_work(Place place) { return place >= kProducts; }

struct TimeBreakdown {
  std::array<double, kPlaces> seconds = {};  ///< over all steps
  std::string shapes;                        ///< the inputs of the product that lost most below its rate
  std::string idle_op;                       ///< the op with whose threads most was idle
  double idle_cpus = 0;                      ///< that more threads could have had, in the mean
};
TimeBreakdown places_of(const Profile& profile);

}  // namespace plimsoll::profiling
