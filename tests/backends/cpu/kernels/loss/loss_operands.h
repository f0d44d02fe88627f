// What losses are held against.
#pragma once

#include <cmath>
#include <vector>

#include "backends/cpu/tensors.h"
#include "ops/ops.h"

namespace plimsoll::cpu::fixtures {

/// Every seventh target ignored.
inline Tensor targets(const Shape& shape, int32_t classes) {
  Tensor t = indices(shape, classes, 11);
  for (size_t i = 0; i < t.bits.size(); i += 7) t.bits[i] = static_cast<uint32_t>(ops::kIgnoreTarget);
  return t;
}

/// Labels of 0, 1 or between; of every third row none.
inline Tensor labels(const Shape& shape, unsigned seed) {
  Tensor t = indices(shape, 5, seed);
  const auto row = static_cast<size_t>(shape.dim(-1));
  std::vector<float> values;
  for (size_t i = 0; i < t.bits.size(); ++i)
    values.push_back(i / row % 3 == 2 ? std::nanf("") : static_cast<float>(t.bits[i]) / 4);
  return floats(shape, values);
}

}  // namespace plimsoll::cpu::fixtures
