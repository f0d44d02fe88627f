// Answers of a model to questions about texts.
#pragma once

#include "base/result.h"
#include "base/stop.h"
#include "engine/predict.h"
#include "telemetry/sink.h"

namespace plimsoll::engine {

/// Whether the model, or what an adapter makes of it, answers questions. Errors: of its config.json.
Result<bool> answers_questions(const PredictRequest& request);

/// Writes a line for each question, in order; where all of them come with their right answers, notes how well
/// they are met. Errors: kBadData of questions and model, kDoesNotFit, kInterrupted, kIo.
Status predict_answers(const PredictRequest& request, telemetry::Sink& sink, const Stop& stop);

}  // namespace plimsoll::engine
