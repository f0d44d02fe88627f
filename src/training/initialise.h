// The first values of a session's states: constants, and parameters as the run file asks for them.
#pragma once

#include <array>
#include <optional>

#include "base/result.h"
#include "checkpoints/load_weights.h"
#include "runtime/session.h"
#include "strategy/prepare.h"

namespace plimsoll::training {

/// Writes the model's constants. Errors: of the device.
Status write_constants(const models::Model& model, runtime::Session& session);

/// What planner::kRandomState holds for a step, 0 for what is drawn before the first; its index of the
/// sequence is 0.
std::array<int32_t, 4> random_words(int64_t seed, int64_t step);
Status write_random_state(runtime::Session& session, int64_t seed, int64_t step);

/// Writes the constants; then reads the parameters from the model's folder, or draws them with the program
/// `init` from training.seed; a head that the folder lacks is drawn all the same. Errors: kBadData where
/// folder and model do not match, or a weight is beyond the range of fp16 that it is rounded to, which ranks
/// that share the parameters look for later (Trainer::start_shared_parameters); kIo.
Result<std::optional<checkpoints::LoadReport>> initialise(const settings::RunConfig& config,
                                                          const strategy::Prepared& prepared,
                                                          runtime::Session& session, bool pretrained,
                                                          int num_threads);

/// Whether each rank has a part of some parameter.
bool are_parameters_shared(const settings::RunConfig& config, const runtime::Session& session);

/// Whether an evaluation reads weights: wherever the model's folder has any, whatever model.init says of how
/// a training would begin. Errors: kBadData where model.path names nothing.
Result<bool> evaluates_weights(const settings::ModelSettings& model);

}  // namespace plimsoll::training
