// Tensors seen through other strides: nothing moves until a kernel cannot read a view. The conventions are
// those of ops.h.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/builder.h"

namespace plimsoll::ops {

using ir::Builder;
using ir::ValueId;

/// Axis i of the result is axis `axes[i]` of x; a view. Op `permute` {axes}.
ValueId permute(Builder& b, ValueId x, std::vector<int64_t> axes);
/// x stretched to `shape` by numpy's rules; a view, in which neighbours share an element. Op `expand`
/// {shape}.
ValueId expand(Builder& b, ValueId x, std::vector<int64_t> shape);
/// `size` of x's elements along `axis`: start, start + step, ...; a view. Op `slice` {axis, start, size,
/// step}; `slice_grad`(dy) {axis, start, step, extent}: dy's elements in their places among zeros.
ValueId slice(Builder& b, ValueId x, int64_t axis, int64_t start, int64_t size, int64_t step = 1);
/// x, through which no gradient passes; a view. Op `detach`.
ValueId detach(Builder& b, ValueId x);
/// x with the order of `axis` reversed; a copy. Op `flip` {axis}.
ValueId flip(Builder& b, ValueId x, int64_t axis);

}  // namespace plimsoll::ops
