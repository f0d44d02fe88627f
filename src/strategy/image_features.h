// Decides whether a run reads what a frozen backbone gives of its images from a file, where it is computed
// once, instead of running the backbone in every step.
#pragma once

#include <string>

#include "base/result.h"
#include "settings/run_config.h"
#include "strategy/prepare.h"
#include "tasks/image_classification.h"

namespace plimsoll::strategy {

/// kRead where every image is the same in each epoch and everything below the head stays as it is: the head
/// alone is trained, on pretrained weights, without augmentation, dropout and statistics of the batch.
/// `model` has its roles (models::select) and norm statistics. Errors: of the weights' folder.
Result<tasks::FeatureUse> feature_use(const settings::RunConfig& config, const models::Model& model,
                                      const tasks::ImageInputs& images, int num_threads);

/// Null where the task reads pixels, or no images.
const tasks::FeatureUse* read_features(const tasks::Task& task);

/// The pass that computes them: the run's evaluation with the features as outputs, planned. `options` of the
/// training, with what its data have. Errors: as prepare.
Result<Prepared> prepare_feature_pass(const settings::RunConfig& config, const runtime::Target& target,
                                      PrepareOptions options, int64_t width);
/// Adds the pass to the phases of a training's plan that reads features. False: the pass does not fit the
/// budgets. True too where nothing is read so. Errors: as above.
Result<bool> add_feature_pass(const settings::RunConfig& config, const runtime::Target& target,
                              PrepareOptions options, Prepared& prepared);

/// What a plan says of that; empty where nothing is read so.
std::string feature_note(const tasks::Task& task);

}  // namespace plimsoll::strategy
