// The byte range of a value in its storage.
#pragma once

#include "ir/shape.h"

namespace plimsoll::ir {

/// From the first element's byte to behind the last's, what lies between them included. Values of block
/// types, which no stride goes through, are dense.
inline int64_t span_bytes(const TensorType& type, const Strides& strides) {
  if (is_block(type.dtype)) return type.bytes().count;
  int64_t last = 0;
  for (int i = 0; i < type.shape.rank(); ++i)
    last += (type.shape.dim(i) - 1) * strides[static_cast<size_t>(i)];
  return storage_bytes(type.dtype, last + 1, last + 1).count;
}

}  // namespace plimsoll::ir
