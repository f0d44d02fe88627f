// Elements by indices that are data. The conventions are those of ops.h.
#pragma once

#include <cstdint>

#include "ir/builder.h"

namespace plimsoll::ops {

using ir::Builder;
using ir::ValueId;

/// As torch.gather: index i32 of x's rank, its extents at most x's but along `axis`, where its values name
/// x's elements (whoever writes it has checked it) -> index's shape. Op `gather`(x, index) {axis};
/// `gather_grad`(dy, index) {axis, shape}: sums of dy's elements in x's shape, those of one place in rising
/// order.
ValueId gather(Builder& b, ValueId x, ValueId index, int64_t axis);

}  // namespace plimsoll::ops
