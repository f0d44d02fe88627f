// Computes, before step 1, the most disk space that a run's checkpoints and its final directory take: the new
// one has to be whole before an older one goes, so `save_total_limit: n` needs room for n + 1.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoints/final_weights.h"
#include "models/model.h"
#include "passes/session_plan.h"
#include "settings/run_config.h"

namespace plimsoll::checkpoints {

/// The file system's own: folders, blocks that are not full.
inline constexpr int64_t kSaveSlackBytes = 1 << 20;

struct SavedBytes {
  int64_t checkpoint = 0, final = 0;
};
/// Of the files with tensors: the small ones are found when the run begins.
SavedBytes saved_bytes(const models::Model& model, const passes::SessionPlan& session,
                       const FinalFormat& final);

/// A checkpoint that lies there.
struct PresentCheckpoint {
  int64_t bytes = 0;
  bool stale = false;  ///< goes with the first new folder
};

struct SaveSchedule {
  int64_t step = 0;  ///< done
  std::optional<int64_t> total_steps = {};
  int64_t save_steps = 0;  ///< 0: none, unless a signal stops the run, which is not counted
  std::optional<int64_t> total_limit = {};
  SavedBytes bytes = {};
  /// trainer_state.json at the run's end, of which each checkpoint has a copy (counted for each where their
  /// number is limited), and events.jsonl, at a guess.
  int64_t state_bytes = 0, events_bytes = 0;
  std::vector<PresentCheckpoint> present = {};  ///< oldest first
};
/// Of this run; `step` are done.
SaveSchedule save_schedule(const settings::RunConfig& config, std::optional<int64_t> total_steps,
                           int64_t step, const SavedBytes& bytes);

struct DiskNeed {
  int64_t bytes = 0;        ///< at most beyond what lies there now
  int64_t checkpoints = 0;  ///< new ones and old ones that are there at once, the one being written included
};
/// Nothing where that follows from the data's length alone: no limit and no number of steps.
std::optional<DiskNeed> disk_need(const SaveSchedule& schedule);

/// Errors: kIo, where the disk that `directory` lies on has less room, naming what it must have, and a limit
/// that would do.
Status check_disk(const SaveSchedule& schedule, const std::string& directory);

/// The checkpoints of `directory` as they are counted; `stale`: their paths.
std::vector<PresentCheckpoint> present_checkpoints(const std::string& directory,
                                                   const std::vector<std::string>& stale);

}  // namespace plimsoll::checkpoints
