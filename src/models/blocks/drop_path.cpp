#include "models/blocks/drop_path.h"

#include "ops/elementwise.h"
#include "ops/layer_scale.h"

namespace plimsoll::models {

ir::ValueId kept_images(ir::Builder& b, const ImageForward& forward, ir::ValueId x, double p) {
  if (!forward.training || p == 0) return {};
  return ops::kept_samples(b, forward.random, b.type(x).shape.dim(0), p,
                           ops::random_key(b.layer(), "drop_path"));
}

}  // namespace plimsoll::models
