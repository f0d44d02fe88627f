// Dropout of a model's activations.
#pragma once

#include "ir/builder.h"

namespace plimsoll::models {

/// x with its elements dropped with probability p, the others divided by 1 - p; keyed by the builder's scope.
/// `noise`: Forward::noise(), ImageForward::noise(); where it is absent, outside training, x itself.
[[nodiscard]] ir::ValueId dropout(ir::Builder& b, ir::ValueId noise, ir::ValueId x, double p);

}  // namespace plimsoll::models
