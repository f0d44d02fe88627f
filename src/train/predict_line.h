// An example's prediction as a line.
#pragma once

#include <span>

#include "io/label_fields.h"
#include "io/tree.h"

namespace plimsoll::train {

/// See predict.h; `logits` are as many as labels.
Tree prediction(const Labels& labels, std::span<const float> logits);

}  // namespace plimsoll::train
