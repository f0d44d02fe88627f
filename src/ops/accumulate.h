// Sums over micro-batches that are kept in 16 bits (accumulate.cpp).
#pragma once

#include "ir/builder.h"

namespace plimsoll::ops {

using ir::Builder;
using ir::ValueId;

/// g of any floating dtype, random i32[4] -> bf16[as g]: acc + g, or g where there is no acc bf16, added in
/// f32 and rounded stochastically by the upper half of the element's word in the stream of the key (philox.h,
/// dropout's counters, with the whole tensor as one sequence: sequence = random[3], the micro-batch's first).
/// Op `accumulate`(g, random, acc?) {key}, a reduction that goes on from acc; no derivative.
ValueId accumulate(Builder& b, ValueId g, ValueId random, int64_t key);

}  // namespace plimsoll::ops
