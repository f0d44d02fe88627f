// Learned positions of a grid of patches, resampled for a grid of another size.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/builder.h"

namespace plimsoll::models {

/// The matrix [rows * columns, side * side] that resamples a square grid to [rows, columns] as
/// torch.nn.functional.interpolate(mode="bicubic", align_corners=False) does: Keys' cubic with a = -0.75,
/// no antialiasing, the border repeated. Computed in double.
std::vector<float> resampling_matrix(int64_t side, int64_t rows, int64_t columns);

/// Positions [N, 1 + old, C] of every image, the first of a class token -> [N, 1 + new, C], the others by
/// `matrix` f32[new, old]. A product an image, so that gradients do not depend on the split of the batch.
ir::ValueId resample_positions(ir::Builder& b, ir::ValueId positions, ir::ValueId matrix);

}  // namespace plimsoll::models
