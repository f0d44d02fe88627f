// Compares the ranks of a run between steps: each reports its plan, its data, how long it computed and
// whether it was asked to stop. One text a rank and step to rank 0, one back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ranks/group.h"
#include "training/observer.h"

namespace plimsoll::training {

/// What a rank says after a step; after 0 steps that it is ready.
struct RankReport {
  int64_t step = 0;
  uint64_t plan = 0;                ///< checksum of everything in the plan
  int64_t targets = 0, length = 0;  ///< of the step's effective batch, and of its bucket
  double seconds = 0;               ///< of the step, without waits for other ranks
  std::string stop = {};            ///< what asked this rank to stop; empty: nothing
  std::string settings = {};        ///< with step 0: the run as YAML
};

/// What rank 0 says before a step. Where the run stops, it fails with kInterrupted on all ranks. kServe: rank
/// 0 reads states that the ranks share (Trainer::serve_shared_states), and decides again; so it does behind
/// kEvaluate and kRestore, where each rank is needed for its part of the parameters, and behind kGather,
/// which makes them whole before rank 0 reads them (Trainer::gather_parameters).
enum class RankDecision { kStep, kFinish, kServe, kEvaluate, kRestore, kGather };

class RollCall {
 public:
  /// `group` outlives it.
  explicit RollCall(ranks::Group& group) : group_(group) {}
  [[nodiscard]] ranks::Group& group() { return group_; }

  /// Says this rank's report; on rank 0 waits for those of all and compares them. Errors: kBadData where
  /// ranks disagree, with both values; as ranks::Group::collect.
  Status report(const RankReport& own);
  /// On rank 0 tells what comes next, on the others returns it. Errors: as ranks::Group::share.
  Result<RankDecision> decide(RankDecision decision);

  // On rank 0, of the last reports.

  /// "SIGTERM at rank 2"; empty where nobody was asked to stop.
  [[nodiscard]] const std::string& stop() const { return stop_; }
  [[nodiscard]] const std::optional<RankTimes>& times() const { return times_; }
  /// A line about a rank that has been slow for kSlowSteps steps, once for as many.
  std::optional<std::string> slow_rank();

  static constexpr int64_t kSlowSteps = 20;
  static constexpr double kSlowFactor = 1.2;  ///< of the median

 private:
  void note_times(const std::vector<RankReport>& reports);

  ranks::Group& group_;
  std::string stop_;
  std::optional<RankTimes> times_;
  std::vector<double> sums_;  ///< of seconds, by rank, since the last look for slow ranks
  int64_t summed_ = 0;
};

/// Whether a rank's report agrees with rank 0's. Errors: kBadData, with both values.
Status compare_reports(const RankReport& first, const RankReport& other, int rank);

std::string report_text(const RankReport& report);
RankReport parse_report(std::string_view text);

}  // namespace plimsoll::training
