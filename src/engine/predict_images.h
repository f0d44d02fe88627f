// A classifier's answers for images.
#pragma once

#include "base/result.h"
#include "base/stop.h"
#include "engine/predict.h"
#include "settings/run_config.h"
#include "telemetry/sink.h"

namespace plimsoll::engine {

/// Whether the model that the request names runs on images. Errors: kBadData where there is none.
Result<bool> classifies_images(const PredictRequest& request);

/// As Engine::predict, of images: {"image": its path, "label", "score", "logits"} a line.
Status predict_images(const PredictRequest& request, telemetry::Sink& sink, const Stop& stop);

/// What a request says of the run: batch, threads, memory. Errors: kInvalidArgument.
Status set_limits(const PredictRequest& request, settings::RunConfig& config);

}  // namespace plimsoll::engine
