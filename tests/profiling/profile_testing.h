// A profile whose every second is known.
#pragma once

#include "profiling/profile.h"

namespace plimsoll::profiling::profile_testing {

/// Two steps of 10 s each, from 0 and from 10: a second of waiting for data, a product of 4, a copy of 2, an
/// op of the update of 2, and a second in which nothing was taken down.
inline Profile two_steps() {
  Profile profile;
  profile.facts.resize(3);
  profile.facts[0] = {
      .op = "linear", .layer = "layers.0", .flops = 1000, .bytes = 10, .dims = "[]", .types = "[]"};
  profile.facts[1] = {
      .op = "copy_start", .layer = "", .copies = true, .bytes = 8, .dims = "[]", .types = "[]"};
  profile.facts[2] = {.op = "adamw", .layer = "optimizer", .updates = true, .dims = "[]", .types = "[]"};
  for (const double start : {0.0, 10.0})
    profile.steps.push_back({.start = start,
                             .seconds = 10,
                             .data_wait_seconds = 1,
                             .units = 50,
                             .ops = {{0, start + 1, 4}, {1, start + 5, 2}, {2, start + 7, 2}},
                             .spans = {{"wait for data", SpanLane::kStep, 0, start, start + 1}}});
  profile.padded_units = 100;
  return profile;
}

}  // namespace plimsoll::profiling::profile_testing
