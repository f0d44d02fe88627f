// The ops that `plimsoll calibrate` measures: the kinds that a step's time goes to, in shapes as models have
// them.
#pragma once

#include <string>
#include <vector>

#include "cli/op_timer.h"

namespace plimsoll::cli {

struct SampleGroup {
  std::string what;  ///< for people
  std::vector<OpSample> samples;
};

/// Products by shape class and type, attention, the loss head, sweeps; large ones last in each group.
std::vector<SampleGroup> calibration_samples();

}  // namespace plimsoll::cli
