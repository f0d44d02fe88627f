// An evaluation as the object that events.jsonl has.
#pragma once

#include "io/tree.h"
#include "training/observer.h"

namespace plimsoll::telemetry {

/// {"event": "eval", …}: loss, counts, metrics; of a classifier the confusion matrix, which has names and
/// rows of counts for at most kMostClassesInEvents classes, else its most confused pairs; examples with
/// their answers; all parts. What is not defined is null.
io::Tree eval_event(const training::EvalEvent& event);
inline constexpr size_t kMostClassesInEvents = 100;

}  // namespace plimsoll::telemetry
