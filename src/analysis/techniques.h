// Plans what each memory technique would save in this run, and what it would cost in time: each planned,
// none guessed.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/tree.h"
#include "strategy/variants.h"

namespace plimsoll::analysis {

/// In the order of the table. The first three leave every bit of the result; of the last nothing is planned.
enum class TechniqueGroup : uint8_t {
  kBatch,
  kRecompute,
  kStep,
  kPrecision,
  kState,
  kOptimizer,
  kFrozen,
  kData,
  kIdle
};
constexpr bool keeps_bits(TechniqueGroup group) { return group <= TechniqueGroup::kStep; }

/// A technique that may be tried: the settings that ask for it.
struct Technique {
  TechniqueGroup group = TechniqueGroup::kIdle;
  std::string name;
  strategy::SettingTexts settings = {};
  std::string note = {};
};

struct TechniqueRow : Technique {
  int64_t peak_bytes = 0;   ///< of the pool that binds the run
  int64_t saved_bytes = 0;  ///< the run's peak less that; negative: it costs
  double seconds = 0;       ///< a step, estimated; 0: not known
};

/// The pool that a plan exceeds; of one that fits that of main_peak_bytes.
planner::Bounded binding_pool(const planner::PlanReport& report);

/// What dimensions are measured by: the process's peak on the CPU, else the device's.
int64_t main_peak_bytes(const planner::PlanReport& report);

/// The setting that bounds it, and to what: on a device the least of what does.
const char* main_budget(const planner::PlanReport& report);
int64_t main_budget_bytes(const planner::PlanReport& report);

/// Accumulators of bf16 with the micro-batches that `split` has: with them no search chooses their size.
strategy::SettingTexts narrow_accumulators(const settings::TrainingSettings& training,
                                           const settings::BatchSplit& split);

/// How many of all are planned.
using PlanProgress = std::function<void(size_t done, size_t total)>;

/// What this version can be asked for that is not what the run does already; `base` is the run's plan.
std::vector<Technique> known_techniques(const settings::RunConfig& config, const strategy::Prepared& base);
/// What others do and there is nothing to do for here, with why: kIdle.
std::vector<Technique> idle_techniques(const settings::RunConfig& config, const strategy::Prepared& base);

/// The table: groups in their order, within a group what saves most first. Settings planned by themselves
/// over the run's give a row's figures. What changes nothing or contradicts the run has none, and its note
/// says why. Plans some thirty variants, one at a time.
std::vector<TechniqueRow> plan_techniques(const strategy::Variants& variants, const strategy::Prepared& base,
                                          const PlanProgress& progress = {});

/// {"event": "techniques", "rows": […]}
io::Tree techniques_event(const std::vector<TechniqueRow>& rows);
/// The table for people; `base` is the run's plan.
std::string techniques_table(const std::vector<TechniqueRow>& rows, const planner::PlanReport& base);

}  // namespace plimsoll::analysis
