// Parts of a batch.
#pragma once

#include "backends/cpu/tensors.h"

namespace plimsoll::cpu::fixtures {

/// Sequences [begin, end) of axis 0.
inline Tensor sequences(const Tensor& t, int64_t begin, int64_t end) {
  const int64_t each = t.type.num_elements() / t.type.shape.dim(0);
  Tensor part{t.type, {t.bits.begin() + begin * each, t.bits.begin() + end * each}};
  part.type.shape.set_dim(0, end - begin);
  return part;
}

}  // namespace plimsoll::cpu::fixtures
