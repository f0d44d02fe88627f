// What a run trains for, as far as settings, model and data say it: a language model, or a classifier with
// these labels.
#pragma once

#include <optional>

#include "base/result.h"
#include "data/labelled/resolve_labels.h"
#include "io/model_config.h"
#include "settings/run_config.h"

namespace plimsoll::train {

enum class TaskKind : uint8_t { kCausalLm, kSequenceClassification };

/// By `task`, else by the model's architecture. `model`: its config.json with what the run file puts over it.
/// Errors: kInvalidArgument where the task is not what the model's head is for, or settings of the data
/// contradict it.
Result<TaskKind> task_kind(const RunConfig& config, const ConfigJson& model);

/// What settings and config.json say of the labels. Errors: kBadData of the config's fields.
Result<LabelRequest> label_request(const RunConfig& config, const ConfigJson& model);

/// The labels as preparing the data will find them: of lines that are there, whether tokenized or not, else
/// by settings and config alone. Writes nothing, and whatever is wrong with the data is left to
/// prepare_data. Errors: as label_request and labels_without_data.
Result<EarlyLabels> find_labels(const RunConfig& config, const ConfigJson& model, bool train);

}  // namespace plimsoll::train
