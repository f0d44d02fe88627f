// An example's prediction as a line.
#pragma once

#include <span>

#include "io/label_fields.h"
#include "io/tree.h"

namespace plimsoll::engine {

/// See predict.h; `logits` are as many as labels.
io::Tree prediction(const io::Labels& labels, std::span<const float> logits);

}  // namespace plimsoll::engine
