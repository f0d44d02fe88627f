// The model of a run and what it is trained for: the part of a plan that no split changes.
#pragma once

#include "strategy/prepare.h"

namespace plimsoll::strategy {

/// Config, model, task, labels, loader and buckets; nothing is planned yet. Gives `options` what is found in
/// the data. With `may_read_features` false every step runs a frozen backbone (strategy/image_features.h).
/// Errors: as load_model_config, make_model, check_against_model, find_labels.
Result<Prepared> prepare_model(const settings::RunConfig& config, PrepareOptions& options,
                               bool may_read_features = true);

}  // namespace plimsoll::strategy
