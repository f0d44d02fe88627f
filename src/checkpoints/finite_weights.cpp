#include "checkpoints/finite_weights.h"

#include <fmt/format.h>

#include <vector>

#include "io/model_weights.h"
#include "io/tensor_stats.h"

namespace plimsoll::checkpoints {

Error blame_weights(Error error, const std::string& directory, int num_threads) {
  const auto weights = io::ModelWeights::open(directory);
  if (!weights) return error;
  std::vector<io::WeightRef> tensors;
  for (const std::string_view name : weights->names()) tensors.push_back(*weights->find(name));
  const auto stats = io::measure_tensors(tensors, num_threads);
  if (!stats) return error;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const io::TensorStats& s = (*stats)[i];
    if (s.finite == s.elements) continue;
    return {ErrorCode::kBadData,
            fmt::format("{}: the weights that were loaded hold NaN or infinities, {} of {} numbers of {}",
                        error.what, s.elements - s.finite, s.elements, tensors[i].tensor->name),
            directory, "use intact weights; plimsoll inspect --tensors shows each tensor"};
  }
  return error;
}

}  // namespace plimsoll::checkpoints
