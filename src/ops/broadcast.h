// Shapes that are stretched to meet: numpy's rules, trailing axes aligned.
#pragma once

#include <optional>
#include <vector>

#include "ir/builder.h"
#include "ir/op_def.h"

namespace plimsoll::ops {

/// The shape that both are stretched to; nothing where some extents differ and neither is 1.
std::optional<ir::Shape> broadcast(const ir::Shape& a, const ir::Shape& b);
/// Whether `from` can be stretched to `to`.
bool stretches_to(const ir::Shape& from, const ir::Shape& to);
/// Strides of an operand of shape `from` along the axes of `to`: 0 where it is stretched.
ir::Strides stretched_strides(const ir::Shape& from, const ir::Strides& strides, const ir::Shape& to);

/// Where element `index` (in rows of the last axis) of a tensor of that shape lies under other strides.
int64_t offset_of(const ir::Shape& shape, int64_t index, const ir::Strides& strides);

/// The sum of `x` over the axes along which `shape` was stretched to x's, in that shape: the cotangent of an
/// operand from that of the result. Stored in `dtype`.
ir::ValueId sum_to(ir::Builder& b, ir::ValueId x, const ir::Shape& shape, ir::DType dtype);

/// Extents as an attribute.
std::vector<int64_t> extents_of(const ir::Shape& shape);

}  // namespace plimsoll::ops
