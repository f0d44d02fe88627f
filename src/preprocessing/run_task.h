// Determines the task of a run from settings, model and data, and the labels of a task that has some.
#pragma once

#include <optional>

#include "base/result.h"
#include "corpora/labelled/resolve_labels.h"
#include "io/model_config.h"
#include "settings/run_config.h"
#include "tasks/task_list.h"

namespace plimsoll::preprocessing {

/// The run's task, as choose_task. `model`: its config.json with what the run file puts over it. Errors:
/// kInvalidArgument where the task is not what the model's head is for, or settings of the data contradict
/// it.
Result<const tasks::TaskDef*> task_of(const settings::RunConfig& config, const io::ConfigJson& model);

/// Whether the run's task masks tokens; where the model or its task cannot be read it does not.
bool masks_tokens(const settings::RunConfig& config);

/// Whether the run's task is one of images; where the model or its task cannot be read it is not.
bool takes_images(const settings::RunConfig& config);

/// The labels of windows of questions: where an answer begins and where it ends.
io::Labels span_labels();

/// What settings and config.json say of the labels. Errors: kBadData of the config's fields.
Result<corpora::LabelRequest> label_request(const settings::RunConfig& config, const io::ConfigJson& model);

/// The labels as preparing the data will find them: of lines that are there, whether tokenized or not, else
/// by settings and config alone. Writes nothing, and whatever is wrong with the data is left to
/// prepare_data. Errors: as label_request and labels_without_data.
Result<corpora::EarlyLabels> find_labels(const settings::RunConfig& config, const io::ConfigJson& model,
                                         bool train);

}  // namespace plimsoll::preprocessing
