#include "models/blocks/drop_path.h"

#include "ops/elementwise.h"
#include "ops/layer_scale.h"

namespace plimsoll::models {
namespace {

/// f32[N] for the images of x [N, …], 0 with probability p, else 1 / (1 - p), keyed by the builder's scope;
/// absent where no branch is left out.
ir::ValueId kept_images(ir::Builder& b, const ImageForward& forward, ir::ValueId x, double p) {
  if (!forward.training || p == 0) return {};
  return ops::kept_samples(b, forward.random, b.type(x).shape.dim(0), p,
                           ops::random_key(b.layer(), "drop_path"));
}

}  // namespace

ir::ValueId add_branch(ir::Builder& b, const ImageForward& forward, ir::ValueId x, ir::ValueId branch,
                       ir::ValueId gamma, double p) {
  const ir::ValueId kept = kept_images(b, forward, x, p);
  return gamma.valid() || kept.valid() ? ops::scaled_add(b, x, branch, gamma, kept) : ops::add(b, x, branch);
}

}  // namespace plimsoll::models
