// The dtypes of weights, master weights, gradients and moments: what training.state says, resolved and
// checked, and what a checkpoint of one choice is to a run of another.
//
//   weights  masters  gradients  moments   bytes a parameter
//   fp32     -        fp32       fp32      16
//   bf16     fp32     fp32       fp32      18
//   bf16     fp32     bf16       fp32      16   where gradients are not accumulated
//   bf16     -        bf16       bf16       8   the same
//
// Gradients that are accumulated take 4 bytes instead, or 2 in bf16 (accumulators).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "optimizers/optimizer.h"
#include "settings/run_config.h"

namespace plimsoll::settings {

struct StateChoice {
  ir::DType weights = ir::DType::kF32;
  optimizers::StateDtypes dtypes = {};
};
/// `adapters`: they are fp32 themselves, and what they adapt is frozen: there are no masters.
StateChoice state_choice(const TrainingSettings& training, bool adapters = false);
/// The same for people, by class: {"weights", "bf16"}, {"gradients", "fp32 accumulators"}, …
std::vector<std::pair<std::string, std::string>> state_words(const TrainingSettings& training,
                                                             bool accumulates, bool adapters = false);

/// What contradicts: formats that training.precision is not, masters of fp32 weights, fp16 weights without
/// masters. Lines about settings without effect go to `notes`. Errors: kInvalidArgument.
Status check_state(const TrainingSettings& training, std::vector<std::string>& notes);

/// Whether the state of a checkpoint made with `then` is exactly that of a run with `now`: nothing is rounded
/// that was not. Errors: kInvalidArgument naming setting, both values and what to do.
Status check_conversion(const TrainingSettings& then, const TrainingSettings& now);

}  // namespace plimsoll::settings
