#include "checkpoints/weight_names.h"

#include <string>

namespace plimsoll::checkpoints {

std::optional<io::WeightRef> find_weight(const io::ModelWeights& weights, std::string_view name,
                                         const models::Model& model) {
  const std::string_view prefix = model.base_prefix();
  auto weight = weights.find(name);
  if (!weight && name.starts_with(prefix)) weight = weights.find(name.substr(prefix.size()));
  const std::string other = weight ? "" : model.other_name(name);
  if (!other.empty()) weight = weights.find(other);
  if (!other.empty() && !weight && other.starts_with(prefix))
    weight = weights.find(std::string_view(other).substr(prefix.size()));
  if (!other.empty() && !weight) weight = weights.find("timm_model." + other);
  return weight;
}

}  // namespace plimsoll::checkpoints
