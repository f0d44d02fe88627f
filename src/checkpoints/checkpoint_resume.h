// Selects the checkpoint that a run resumes from, and reads its state.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoints/checkpoint.h"
#include "checkpoints/same_run.h"
#include "checkpoints/tensor_files.h"
#include "runtime/session.h"
#include "settings/run_config.h"

namespace plimsoll::checkpoints {

/// What there is to go on from.
struct ResumeChoice {
  std::vector<FoundCheckpoint> candidates;  ///< newest first
  /// One that is damaged or cannot be read is an error instead of a reason to take the next.
  bool only_this = false;
};

/// `resume`: auto (the checkpoints of `output_dir`), never, or a folder: a checkpoint, or a run's with
/// several. Errors: kBadData where that folder holds none.
Result<ResumeChoice> choose_checkpoints(const std::string& resume, const std::string& output_dir);

/// What becomes of a candidate that failed with `error`: it is passed over and named through `note`. Errors:
/// `error` itself where it is no matter of the data or of reading it, or only this one is to be taken; where
/// the candidate `at` was the last one, that there is none.
Status pass_over(const ResumeChoice& choice, size_t at, Error error, const Note& note);
/// Opens the first candidate that is neither damaged nor unreadable, from `from` on; advances `from` to it.
/// Nothing where there was none to begin with. Errors: pass_over's.
Result<std::optional<Checkpoint>> open_first_intact(const ResumeChoice& choice, size_t& from,
                                                    const Note& note);

/// Reads parameters, masters and optimizer state into the session, each in its dtype: 16 bits become f32,
/// weights their masters' nearest, where the checkpoint keeps them otherwise. Errors: kBadData for a wrong
/// checksum or a tensor that is not there in its shape; kIo. The states are then undefined.
Status load_checkpoint(const Checkpoint& checkpoint, const models::Model& model, runtime::Session& session,
                       int num_threads);

/// What becomes obsolete in `output_dir` with the first folder that a run publishes which goes on from
/// `taken`, or from nothing.
std::vector<std::string> stale_checkpoints(const std::string& output_dir,
                                           const std::optional<Checkpoint>& taken);

}  // namespace plimsoll::checkpoints
