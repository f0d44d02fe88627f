// The table that guides give - which model on which card - planned: does it fit, by which choices, with how
// many bytes of what; and where it does not, what does.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/techniques.h"
#include "io/tree.h"
#include "strategy/variants.h"

namespace plimsoll::analysis {

/// A line of the rule of thumb.
struct Card {
  std::string name;    ///< "24 GB"
  int64_t bytes = 0;   ///< what a plan may use of it
  std::string preset;  ///< the model
  int64_t rank = 0;    ///< of LoRA on all linear maps; 0: all of the model learns
};
/// The guides': 8 GB a model of 1 B parameters with LoRA, 16 GB 3 B, 24 GB 7 B, 40 GB 13 B, 80 GB 7 B with
/// all of it, 8 x 80 GB 70 B; as if several cards were one. A card's N GB are taken as N x 10^9 bytes: of the
/// N GiB that it has, seven hundredths are left for driver and context.
const std::vector<Card>& cards();

struct CardRow {
  Card card;
  strategy::SettingTexts settings;  ///< over the run's; planned by themselves they give this row
  planner::PlanReport report;       ///< remedies too, where it does not fit
  int64_t least_bytes = 0;          ///< of the device, the least that would do
  int64_t num_parameters = 0;
};

/// The run that the table is for where none is given: 8 sequences of 2,048 tokens a step.
std::string card_table_run();
/// Each card's model in bf16 on a CUDA card of that memory of which no more is known, and so without times;
/// the host without bounds; where all of it learns with the 16 bytes a parameter of mixed precision (weights
/// and gradients bf16, master weights and moments fp32: Rajbhandari et al. 2020, arXiv:1910.02054). Data,
/// batch and all else are the run's. Errors: as prepare.
Result<std::vector<CardRow>> plan_cards(const settings::RunConfig& config,
                                        const strategy::PrepareOptions& options,
                                        const std::vector<Card>& list, const PlanProgress& progress = {});

/// {"event": "table", "rows": [{"card", "card_bytes", "model", "parameters", "learns", "settings", "fits",
/// "peak_bytes", "least_bytes", "classes", "choices", "seconds", "tokens_per_second", "remedies"}]}; the time
/// is null, because a size alone has no rates.
io::Tree card_event(const std::vector<CardRow>& rows);
/// For people.
std::string card_table(const std::vector<CardRow>& rows);

}  // namespace plimsoll::analysis
