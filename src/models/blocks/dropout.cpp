#include "models/blocks/dropout.h"

#include "ops/ops.h"

namespace plimsoll::models {

ir::ValueId dropout(ir::Builder& b, ir::ValueId noise, ir::ValueId x, double p) {
  if (!noise.valid() || p == 0) return x;
  return ops::dropout(b, x, noise, p, ops::random_key(b.layer(), "dropout"));
}

}  // namespace plimsoll::models
