// A plan of a caller's model: the trace, the settings, and the programs that the planner builds from them.
// Sessions share it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "library/trace.h"
#include "settings/run_config.h"
#include "strategy/prepare.h"

namespace plimsoll::library {

/// A caller's settings as the configuration of a run.
struct OwnSettings {
  settings::RunConfig config;
  bool scales_dynamically = false;  ///< the loss scale changes, and a step that overflows is skipped
};
/// YAML or JSON with sections training, memory and runtime over the defaults of own models. Errors:
/// kInvalidArgument.
Result<OwnSettings> parse_own_settings(std::string_view text, const Trace& trace);

class OwnPlan {
 public:
  /// `trace` has a loss and is not changed any more. That it does not fit is no error. Errors:
  /// kInvalidArgument.
  static Result<std::shared_ptr<const OwnPlan>> create(std::shared_ptr<const Trace> trace,
                                                       std::string_view settings);

  [[nodiscard]] const Trace& trace() const { return *trace_; }
  [[nodiscard]] const settings::RunConfig& config() const { return settings_.config; }
  [[nodiscard]] bool scales_dynamically() const { return settings_.scales_dynamically; }
  [[nodiscard]] const strategy::Prepared& prepared() const { return *prepared_; }
  [[nodiscard]] const planner::PlanReport& report() const { return prepared_->report; }
  [[nodiscard]] int num_threads() const { return num_threads_; }
  [[nodiscard]] bool fits() const { return prepared_->report.fits; }
  /// The memory of a session.
  [[nodiscard]] int64_t peak_bytes() const;
  /// The smallest budget that fits, in bytes; of a plan that does not fit.
  [[nodiscard]] int64_t least_bytes() const { return least_bytes_; }
  /// Of a plan that does not fit.
  [[nodiscard]] Error does_not_fit() const;

 private:
  OwnPlan(std::shared_ptr<const Trace> trace, OwnSettings settings)
      : trace_(std::move(trace)), settings_(std::move(settings)) {}
  Result<strategy::Prepared> plan_within(std::optional<int64_t> budget, strategy::PlanRequest request) const;
  Status find_least();

  std::shared_ptr<const Trace> trace_;
  OwnSettings settings_;
  int num_threads_ = 1;
  std::optional<strategy::Prepared> prepared_;  ///< there, once it is created
  int64_t least_bytes_ = 0;
};

/// Bytes of a report that its budget bounds.
int64_t taken_bytes(const planner::PlanReport& report);

}  // namespace plimsoll::library
