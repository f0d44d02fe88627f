// Reads a model's buffers from a directory's weights.
#pragma once

#include <vector>

#include "base/result.h"
#include "io/model_weights.h"
#include "models/model.h"

namespace plimsoll::runtime {
class Session;
}

namespace plimsoll::checkpoints {

/// Where a buffer comes from.
struct BufferSource {
  const models::Buffer* buffer = nullptr;
  io::WeightRef weight;
};

/// A model's buffers held against a directory's tensors.
struct BufferMatch {
  std::vector<BufferSource> sources;           ///< of the right type and shape
  std::vector<BufferSource> misfit;            ///< another type or shape
  std::vector<const models::Buffer*> missing;  ///< no tensor of that name; counts may be missing

  [[nodiscard]] bool fits() const { return misfit.empty() && missing.empty(); }
};

/// By the names of buffers, or by these without the family's base prefix. A count that is missing is zero.
BufferMatch match_buffers(const models::Model& model, const io::ModelWeights& weights);

/// Into the session's states, whatever float type the files have. Errors: kIo.
Status load_buffers(const BufferMatch& match, runtime::Session& session);

}  // namespace plimsoll::checkpoints
