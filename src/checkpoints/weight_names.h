// The names by which a model's tensors and buffers are looked for in files.
#pragma once

#include <optional>
#include <string_view>

#include "io/model_weights.h"
#include "models/model.h"

namespace plimsoll::checkpoints {

/// The tensor of that name: with the family's prefix or without it, or as other files name it
/// (Model::other_name); there it may hold several of the model's (ImageModel::other_part).
std::optional<io::WeightRef> find_weight(const io::ModelWeights& weights, std::string_view name,
                                         const models::Model& model);

}  // namespace plimsoll::checkpoints
