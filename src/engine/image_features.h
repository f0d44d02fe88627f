// Computes, before a training, what the frozen backbone gives of its images, where the run reads that.
#pragma once

#include <functional>

#include "base/stop.h"
#include "preprocessing/run_data.h"
#include "strategy/prepare.h"

namespace plimsoll::engine {

/// Features of the images of `data` that do not lie in the cache are computed as an evaluation of the run
/// would compute them, in a process of its own, whose plan is held to the same budgets. Call while no other
/// thread runs. `note` is told what there is. Errors: as an evaluation's; kDoesNotFit; kInterrupted.
Status make_features(const settings::RunConfig& config, const strategy::PrepareOptions& planning,
                     const strategy::Prepared& prepared, const preprocessing::RunData& data,
                     const preprocessing::DataProgress& progress, const Stop& stop,
                     const std::function<void(const std::string&)>& note);

}  // namespace plimsoll::engine
