// Access to the components of a block-quantized value: codes, scales, the scales' scales.
#pragma once

#include "base/check.h"
#include "ir/shape.h"

namespace plimsoll::runtime {

/// Component `index` of a dense value (ir/dtype.h; 0: the codes) as a tensor of one axis. `Ref` is a
/// TensorRef: where the value lies, and its type.
template <typename Ref>
Ref component(const Ref& value, size_t index) {
  const auto all = ir::components(value.type.dtype, value.num_elements(), value.type.shape.dim(-1));
  PLIMSOLL_CHECK(index < all.size() && value.is_dense(), ir::to_string(value.type));
  const ir::Component& part = all[index];
  const ir::Shape shape{part.num_elements};
  return {value.data + part.offset, {part.dtype, shape}, ir::dense_strides(shape)};
}

}  // namespace plimsoll::runtime
