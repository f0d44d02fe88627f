// The ops that measuring a machine times: the kinds that a step's time goes to, in shapes as models have
// them.
#pragma once

#include <string>
#include <vector>

#include "measuring/op_timer.h"

namespace plimsoll::measuring {

struct SampleGroup {
  std::string what;  ///< for people
  std::vector<OpSample> samples;
};

/// Products by shape class and type, attention, the loss head, memory-bound ops; large ones last in each
/// group.
std::vector<SampleGroup> calibration_samples();
/// The same kinds in the shapes of a card's steps: thousands of tokens, wide layers, weights of the product's
/// type, tf32 too.
std::vector<SampleGroup> card_samples();
/// The few of these that say most of a step, what counts most first: a shape or two of each kind. Operands
/// and results of each take at most 16 MiB.
std::vector<SampleGroup> first_samples();

}  // namespace plimsoll::measuring
