// Counts of updates that the host keeps for the model's normalisation layers (num_batches_tracked): every
// micro-batch that a layer takes its statistics from counts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "models/model.h"
#include "runtime/session.h"

namespace plimsoll::training {

class UpdateCounts {
 public:
  /// What the session holds after `step` steps; each of the steps to come runs `micro_batches`. Errors: of
  /// the device.
  static Result<UpdateCounts> read(const models::Model& model, const runtime::Session& session, int64_t step,
                                   int64_t micro_batches);
  /// Into the session, as they are after `step` steps. Errors: of the device.
  Status write(runtime::Session& session, int64_t step) const;

 private:
  struct Count {
    std::string state;
    int64_t value = 0;
  };
  std::vector<Count> counts_;
  int64_t step_ = 0, micro_batches_ = 1;
};

}  // namespace plimsoll::training
