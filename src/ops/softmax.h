// Softmax over the last axis. The conventions are those of ops.h.
#pragma once

#include "ir/builder.h"

namespace plimsoll::ops {

using ir::Builder;
using ir::ValueId;

/// exp(x - max) / sum of those, over the last axis; f32, as under PyTorch's autocast, unless {out} says
/// otherwise. Op `softmax` {log, out?}; {log}: its logarithm, x - max - log(sum). `softmax_grad`(dy, y) {log,
/// out?} -> y (dy - sum(dy y)), or dy - exp(y) sum(dy).
ValueId softmax(Builder& b, ValueId x);
ValueId log_softmax(Builder& b, ValueId x);

}  // namespace plimsoll::ops
