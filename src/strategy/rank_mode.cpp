#include "strategy/rank_mode.h"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "planner/report/budget.h"
#include "settings/distributed.h"

namespace plimsoll::strategy {
namespace {

using settings::RankMode;

/// With several micro-batches zero2 and zero3 add their gradients in another order.
bool is_one_micro_batch(const settings::RunConfig& config) {
  const auto split = settings::fixed_batch_split(
      settings::training_of_rank(config.training, config.distributed.num_ranks()));
  return !split || split->grad_accum_steps == 1;
}

std::vector<settings::RunConfig> candidates(const settings::RunConfig& config) {
  std::vector<settings::RunConfig> all;
  for (const RankMode mode : {RankMode::kDdp, RankMode::kZero1, RankMode::kZero2, RankMode::kZero3}) {
    settings::RunConfig one = config;
    one.distributed.mode = mode;
    const bool has_same_bits = !settings::shares_gradients(one.distributed) || is_one_micro_batch(config);
    if (has_same_bits && settings::check_distributed(one).empty()) all.push_back(std::move(one));
  }
  return all;
}

}  // namespace

Result<settings::RunConfig> with_rank_mode(const settings::RunConfig& config, const runtime::Target& target,
                                           PrepareOptions options,
                                           const std::function<void(const std::string&)>& note) {
  const settings::DistributedSettings& d = config.distributed;
  if (d.mode != RankMode::kAuto || d.num_ranks() == 1 || options.purpose != Purpose::kTrain) return config;
  options.dump_ir.clear();
  const std::vector<settings::RunConfig> modes = candidates(config);
  settings::RunConfig chosen = config;
  std::optional<planner::PlanReport> best;
  // Where no mode fits, the one that needs least says which budget would do.
  for (const PlanRequest request : {PlanRequest::kFit, PlanRequest::kReport}) {
    if (best && best->fits) break;
    options.request = request;
    best.reset();
    for (const settings::RunConfig& one : modes) {
      Result<Prepared> prepared = prepare_before_data(one, target, options);
      if (!prepared && !best) return prepared.error();
      if (!prepared || (best && !planner::is_better(prepared->report, *best))) continue;  // or no such model
      best = std::move(prepared->report);
      chosen = one;
      if (best->fits) break;
    }
  }
  if (note && chosen.distributed.mode != RankMode::kDdp)
    note(fmt::format("distributed.mode: auto is {}, since a rank that holds more does not fit its budget",
                     word(chosen.distributed.mode)));
  return chosen;
}

}  // namespace plimsoll::strategy
