#include "library/own_plan.h"

#include <fmt/format.h>

#include <utility>

#include "base/units.h"
#include "library/traced_model.h"
#include "models/selection.h"
#include "settings/param_groups.h"
#include "settings/state_settings.h"
#include "strategy/memory_budget.h"
#include "strategy/plan_cache.h"
#include "strategy/run_device.h"

namespace plimsoll::library {
namespace {

/// The model and the task, before anything is planned.
Result<strategy::Prepared> prepare_own(const settings::RunConfig& config,
                                       const std::shared_ptr<const Trace>& trace) {
  auto model = std::make_unique<TracedModel>(*trace);
  PLIMSOLL_TRY(models::select(*model, settings::selection_of(config.training)));
  model->keep_in(settings::state_choice(config.training).weights);
  return strategy::Prepared{.model_config = io::ConfigJson(io::Tree::map(), "own model"),
                            .model = std::move(model),
                            .task = std::make_unique<TracedTask>(trace),
                            .loader = {},
                            .buckets = {.lengths = {config.data.sequence_length}}};
}

}  // namespace

int64_t taken_bytes(const planner::PlanReport& report) {
  return report.persistent_bytes + report.arena_bytes + report.host_pinned_bytes + report.host_pageable_bytes;
}

int64_t OwnPlan::peak_bytes() const { return taken_bytes(prepared_->report); }

Result<strategy::Prepared> OwnPlan::plan_within(std::optional<int64_t> budget,
                                                strategy::PlanRequest request) const {
  settings::RunConfig config = settings_.config;
  if (budget) config.memory.budget = {settings::MemoryBudget::Kind::kBytes, *budget};
  const auto target = strategy::make_target(config, num_threads_);
  strategy::PrepareOptions options{.num_threads = num_threads_, .looks_at_data = false, .request = request};
  PLIMSOLL_ASSIGN(strategy::Prepared prepared, prepare_own(config, trace_));
  options.buckets = prepared.buckets;
  strategy::PlanCache cache;
  return strategy::plan_prepared(config, std::move(prepared), *target, options, cache);
}

/// The plan that does not fit is the one that needs least, as far as a search for its budget has found. Under
/// a budget of that much the search may find one that needs less: so it goes on until one byte less does not
/// fit.
Status OwnPlan::find_least() {
  constexpr int kMostSearches = 8;
  least_bytes_ = peak_bytes();
  for (int i = 0; i < kMostSearches; ++i) {
    PLIMSOLL_ASSIGN(const strategy::Prepared less,
                    plan_within(least_bytes_ - 1, strategy::PlanRequest::kReport));
    if (!less.report.fits) return Ok{};
    least_bytes_ = taken_bytes(less.report);
  }
  return Ok{};
}

Result<std::shared_ptr<const OwnPlan>> OwnPlan::create(std::shared_ptr<const Trace> trace,
                                                       std::string_view settings) {
  PLIMSOLL_TRY(check_trace(trace));
  PLIMSOLL_ASSIGN(OwnSettings own, parse_own_settings(settings, *trace));
  std::shared_ptr<OwnPlan> plan(new OwnPlan(std::move(trace), std::move(own)));
  plan->num_threads_ = strategy::num_threads(plan->config());
  PLIMSOLL_ASSIGN(plan->prepared_, plan->plan_within({}, strategy::PlanRequest::kPrograms));
  if (!plan->fits()) PLIMSOLL_TRY(plan->find_least());
  return std::shared_ptr<const OwnPlan>(std::move(plan));
}

Error OwnPlan::does_not_fit() const {
  return {ErrorCode::kDoesNotFit,
          fmt::format("the plan needs {} ({} bytes) and the budget is {}", to_string(Bytes(least_bytes_)),
                      least_bytes_, to_string(Bytes(report().budget_bytes))),
          "memory budget",
          fmt::format("raise memory_budget to at least {} bytes, checkpoint more of the model, or lower the "
                      "batch and accumulate",
                      least_bytes_)};
}

}  // namespace plimsoll::library
