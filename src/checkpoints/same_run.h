// Checks that a run is the one that wrote a checkpoint or a finished run's record.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "checkpoints/checkpoint.h"
#include "io/model_config.h"
#include "settings/run_config.h"

namespace plimsoll::checkpoints {

/// A message for people, one line.
using Note = std::function<void(const std::string&)>;

/// Holds what the checkpoint was made with against today's run: every setting that says what is trained, the
/// model's config, its first weights and the data as `now` has them, wherever they lie. More steps than
/// planned then are no change; precision and training.state may change where the state stays exact, and the
/// settings `with` (of the rate alone) are today's: `note` is told. Returns what `with` changed, as
/// CheckpointManifest::changes. Errors: kInvalidArgument naming setting, old and new value; kBadData.
Result<std::vector<std::string>> check_same_run(const Checkpoint& checkpoint,
                                                const settings::RunConfig& config,
                                                const io::ConfigJson& model, const CheckpointManifest& now,
                                                const std::vector<std::string>& with = {},
                                                const Note& note = {});

/// The same for the record of a finished run (final_record.h), whose model stays as it is: nothing may
/// differ, neither what is trained nor the form in which final/ is stored. With `may_grow` there may be more
/// steps. Errors: as check_same_run.
Status check_finished_run(const Checkpoint& record, const settings::RunConfig& config,
                          const io::ConfigJson& model, const CheckpointManifest& now, bool may_grow);

}  // namespace plimsoll::checkpoints
