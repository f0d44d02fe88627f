// Plans over values of settings: which of them fit, and which is the largest that does.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/techniques.h"
#include "io/tree.h"
#include "strategy/variants.h"

namespace plimsoll::analysis {

/// One setting and what it is to be.
struct SweepAxis {
  std::string path;                      ///< as it was given
  std::vector<std::string> values = {};  ///< as YAML
  std::string setting = {};              ///< what it means: `path` may be another program's name
  bool finds_largest = false;            ///< in place of values: the largest that fits
  bool at_once = false;                  ///< batches, not in parts: rows end with the first that does not fit
};

/// "data.sequence_length=512,1024": commas within brackets, braces or quotes are part of a value. "max" alone
/// asks for the largest value that fits, of an integer setting or of model.preset; "all" for each word that a
/// setting takes, each preset, each micro-batch that divides the batch, batches of powers of two at once.
/// Errors: kInvalidArgument, of an unknown setting with the nearest known one.
Result<SweepAxis> parse_sweep(const std::string& text, const settings::RunConfig& config);

/// training.global_batch_size=1,2,4,… at once.
SweepAxis batches_at_once();

struct SweepRow {
  strategy::SettingTexts settings;       ///< over the run's; planned by themselves they give this row
  std::vector<std::string> values = {};  ///< of the axes, in their order; empty where none fits
  std::optional<planner::PlanReport> report = {};  ///< nothing: it cannot be planned, `note` says why
  int64_t budget_bytes = 0, peak_bytes = 0;        ///< of what bounds the main peak
  int64_t least_bytes = 0;                         ///< the least budget that would do
  std::string note = {};
};

struct Sweep {
  std::vector<SweepAxis> axes;
  std::vector<SweepRow> rows;
  std::string model, budget;
};

/// A row for each combination of values, the last axis fastest. Of an axis that asks for the largest there is
/// one value, which fits, where the next one does not, nor the next multiples of 8, 64 and 256:
/// training.global_batch_size is then the batch that is run at once, because in parts any fits. What cannot
/// be planned is a row that says so. Errors: where no row can be planned, that of the first.
Result<Sweep> plan_sweep(const strategy::Variants& variants, std::vector<SweepAxis> axes,
                         const PlanProgress& progress = {});

/// Of one axis the row of its largest value that fits, of models that with the most parameters; else null.
const SweepRow* largest_row(const Sweep& sweep);

/// {"event": "sweep", "budget", "keys": […], "rows": [{"settings", "fits", "budget_bytes", "least_bytes",
/// "peak_bytes", "seconds", "tokens_per_second", "communication" (of several ranks), "parameters", "choices",
/// "note"}], "largest"}: the value of largest_row
io::Tree sweep_event(const Sweep& sweep);
/// For people, with the answer below: the largest of the values that fits.
std::string sweep_table(const Sweep& sweep);

}  // namespace plimsoll::analysis
