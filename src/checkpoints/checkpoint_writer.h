// Saves a run: checkpoints, and the final model directory. A checkpoint is written behind the training: a
// thread reads parameters and optimizer state where they lie while the next step computes its gradients, and
// that step waits just before it changes the first of them.
//
//   step n │ forward, backward of n + 1        │gate│ update │ …
//          └ write model, optimizer ───────────┘    sync, small files, checkpoint.json, rename, rotate
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/thread.h"
#include "checkpoints/checkpoint_files.h"
#include "checkpoints/save_report.h"

namespace plimsoll::checkpoints {

struct SaveOptions {
  /// With a thread of its own; without, `start` returns when all is done.
  bool behind = false;
  /// Checkpoints that the first folder to be published makes obsolete: an earlier run's, a damaged one's.
  std::vector<std::string> stale = {};
};

/// How far a run has come.
struct RunCounters {
  int64_t step = 0;
  int64_t evaluated_step = -1;  ///< the last step whose evaluation was reported
  int64_t tokens = 0;           ///< trained on
  int64_t skipped = 0;          ///< steps whose update an overflow has skipped
  int64_t skipped_in_a_row = 0;
  std::optional<BestState> best = {};  ///< nothing: not looked for
};

/// Spans of the thread of the steps, for what a step loses to saving: the call of start, and the update that
/// waits until no save reads what it overwrites.
inline constexpr const char* kSaveSpan = "save a checkpoint";
inline constexpr const char* kSaveWaitSpan = "wait for a checkpoint";

/// Async: all but wait_for_sources belong to one thread.
class CheckpointWriter {
 public:
  /// Everything that a save needs is allocated here where saves are written behind. Errors: kIo where the
  /// system gives no thread or no memory for that.
  static Result<std::unique_ptr<CheckpointWriter>> create(const settings::RunConfig& config,
                                                          std::unique_ptr<CheckpointFiles> files,
                                                          SaveOptions options);
  /// Waits for the save in flight.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Saves the session's state after a step; an earlier save is waited for first. Errors: kIo, also the
  /// earlier save's.
  Status start(const RunCounters& counters);
  /// Returns when no save reads the session's memory any more. From any thread.
  void wait_for_sources();
  /// The result of a save that has ended since it was last asked for.
  std::optional<Result<SaveReport>> poll();
  /// Waits for the save in flight.
  void finish();

  /// Writes `<output.dir>/final`, `card` as its README.md, and the record of its run beside it, and waits for
  /// them. Errors: kIo; what stood there before is then still there. A record that cannot be written is no
  /// reason to lose the model: the report says so.
  Result<SaveReport> save_final(const RunCounters& counters, const std::string& card);
  [[nodiscard]] const CheckpointFiles& files() const { return *files_; }
  /// Removes all but the newest output.save_total_limit checkpoints up to `step`, as each save does. The best
  /// one is among those that stay; with a limit of 1 it stays beside the newest.
  /// What cannot be removed stays until the next time.
  void rotate(int64_t step) const;

 private:
  CheckpointWriter(const settings::RunConfig& config, std::unique_ptr<CheckpointFiles> files,
                   SaveOptions options)
      : config_(config), files_(std::move(files)), options_(std::move(options)) {}
  Status start_thread();
  void set_counters(const RunCounters& counters);
  Result<io::AtomicDirectory> write_record() const;
  void work();
  Result<SaveReport> save();
  void release_sources();
  void end_save(Result<SaveReport> result);
  Status publish(io::AtomicDirectory& directory);

  const settings::RunConfig& config_;
  std::unique_ptr<CheckpointFiles> files_;
  SaveOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ready_ = false;    ///< the thread has its buffers, or was refused them
  bool asked_ = false;    ///< a save is in flight
  bool reading_ = false;  ///< and reads the session's memory
  bool stopping_ = false;
  double started_ = 0, waited_ = 0;
  std::vector<Result<SaveReport>> results_;  ///< ended and not yet asked for, in order
  std::optional<Error> refused_;             ///< what the thread could not begin for
  Thread thread_;
};

}  // namespace plimsoll::checkpoints
