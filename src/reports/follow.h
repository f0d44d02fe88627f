// A run of another process, followed by its folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/sparkline.h"
#include "reports/run_events.h"

namespace plimsoll::reports {

enum class RunState : uint8_t {
  kRuns,
  kEnded,  ///< its last process has told a summary
  kGone    ///< stopped or killed before
};

/// Reads what has been appended since the last look.
class RunFollower {
 public:
  /// Errors: kBadData where the folder has no events.jsonl.
  static Result<RunFollower> open(const std::string& folder);
  /// Errors: kIo; kBadData where the file has gone.
  Status look();

  [[nodiscard]] RunState state() const { return state_; }
  /// The last step; nothing before the first.
  [[nodiscard]] const std::optional<StepRow>& last() const { return last_; }
  [[nodiscard]] const Course& losses() const { return losses_; }
  /// Seconds a step: a mean that forgets.
  [[nodiscard]] double step_seconds() const { return step_seconds_; }
  [[nodiscard]] int64_t total_steps() const { return total_steps_; }  ///< 0: not known
  /// Resident bytes of the process now; 0 where it is not to be seen. And what its plan comes to, its budget.
  [[nodiscard]] int64_t resident_bytes() const { return resident_bytes_; }
  [[nodiscard]] int64_t budget_bytes() const { return budget_bytes_; }
  [[nodiscard]] const io::Tree& summary() const { return summary_; }
  /// What the run counts its examples in.
  [[nodiscard]] const std::string& unit() const { return unit_; }
  /// Evaluations, checkpoints and warnings since the last call, a line each.
  std::vector<std::string> take_messages();

 private:
  explicit RunFollower(std::string folder);
  void line(std::string_view text);
  void take_step(const StepRow& row);
  void look_at_process();
  void take_torn();

  std::string folder_, path_, rest_;  ///< `rest_`: a line that is not whole yet
  int64_t offset_ = 0;
  RunState state_ = RunState::kRuns;
  bool is_seen_ = false;  ///< its process runs on this machine
  std::optional<StepRow> last_;
  Course losses_;
  double step_seconds_ = 0;
  int64_t total_steps_ = 0, resident_bytes_ = 0, budget_bytes_ = 0;
  bool passes_over_ = false;  ///< the rest of a line that is too long
  io::Tree summary_;
  std::string unit_ = "tokens";
  std::vector<std::string> messages_;
};

}  // namespace plimsoll::reports
