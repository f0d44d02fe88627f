// Stochastic depth: in training a block's branch is left out for whole images. Huang et al. 2016,
// arXiv:1603.09382.
#pragma once

#include "models/image_model.h"

namespace plimsoll::models {

/// f32[N] for the images of x [N, …], 0 with probability p, else 1 / (1 - p), keyed by the builder's scope;
/// absent where no branch is left out.
[[nodiscard]] ir::ValueId kept_images(ir::Builder& b, const ImageForward& forward, ir::ValueId x, double p);

}  // namespace plimsoll::models
