// Stochastic depth: in training a block's branch is left out for whole images. Huang et al. 2016,
// arXiv:1603.09382.
#pragma once

#include "models/image_model.h"

namespace plimsoll::models {

/// x + gamma * branch for x [N, …], without a scale where `gamma` is absent. In training the branch of an
/// image is left out with probability p, keyed by the builder's scope, and divided by 1 - p otherwise.
[[nodiscard]] ir::ValueId add_branch(ir::Builder& b, const ImageForward& forward, ir::ValueId x,
                                     ir::ValueId branch, ir::ValueId gamma, double p);

}  // namespace plimsoll::models
