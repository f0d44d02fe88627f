// Plans, of own models and of runs.
#include <fmt/format.h>

#include <string>

#include "engine/engine.h"
#include "library/c_api/border.h"
#include "library/c_api/handles.h"
#include "library/plan_json.h"
#include "library/runs.h"
#include "planner/report/memory_timeline.h"
#include "planner/report/timeline_svg.h"

using namespace plimsoll;           // NOLINT: the interface has no namespace
using namespace plimsoll::library;  // NOLINT

namespace {

Result<std::string> timeline_of(const strategy::Prepared& prepared) {
  const passes::SessionPlan& session = prepared.programs.session;
  if (session.programs.empty())
    return Error{ErrorCode::kInvalidArgument, "a plan that does not fit has no programs to draw"};
  const planner::MemoryTimeline timeline = planner::memory_timeline(session, planner::peak_program(session));
  return planner::timeline_svg(
      timeline, fmt::format("{}: bytes alive while {} runs", prepared.report.model, timeline.program));
}

}  // namespace

int pls_plan_create(const pls_builder* builder, const char* settings, pls_plan** plan, pls_error** error) {
  return guarded(error, [&]() -> Status {
    PLS_NEEDS(builder);
    PLS_NEEDS(plan);
    PLIMSOLL_ASSIGN(const auto own, OwnPlan::create(builder->trace, text_of(settings)));
    auto handle = std::make_unique<pls_plan>();
    handle->own = own;
    handle->json = io::to_json(plan_tree(*own));
    *plan = handle.release();
    return Ok{};
  });
}

int pls_plan_run(const char* run_file, const char* settings, const char* const* overrides,
                 size_t num_overrides, pls_plan** plan, pls_error** error) {
  return guarded(error, [&]() -> Status {
    PLS_NEEDS(plan);
    PLIMSOLL_ASSIGN(const RunText run, run_text(run_file, settings, overrides, num_overrides));
    PLIMSOLL_ASSIGN(const settings::RunConfig config, read_run(run, settings::RunUse::kPlan));
    auto handle = std::make_unique<pls_plan>();
    PLIMSOLL_ASSIGN(handle->run, engine::Engine::plan(config, {strategy::num_threads(config)}));
    handle->json = io::to_json(plan_tree(handle->run->report));
    *plan = handle.release();
    return Ok{};
  });
}

pls_plan* pls_plan_retain(pls_plan* plan) {
  if (plan != nullptr) plan->references.fetch_add(1, std::memory_order_relaxed);
  return plan;
}

void pls_plan_free(pls_plan* plan) {
  if (plan != nullptr && plan->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete plan;
}

int pls_plan_fits(const pls_plan* plan) { return plan != nullptr && plan->prepared().report.fits ? 1 : 0; }

int64_t pls_plan_peak_bytes(const pls_plan* plan) {
  if (plan == nullptr) return 0;
  return plan->own ? plan->own->peak_bytes() : plan->run->report.process_peak_bytes();
}

const char* pls_plan_json(const pls_plan* plan) { return plan == nullptr ? "{}" : plan->json.c_str(); }

int pls_plan_text(pls_plan* plan, const char* what, const char** text, pls_error** error) {
  return guarded(error, [&]() -> Status {
    PLS_NEEDS(plan);
    PLS_NEEDS(text);
    const std::lock_guard lock(plan->mutex);
    const std::string_view wanted = text_of(what);
    if (wanted == "table") {
      if (!plan->table) plan->table = planner::plan_table(plan->prepared().report);
      *text = plan->table->c_str();
    } else if (wanted == "timeline") {
      if (!plan->timeline) {
        PLIMSOLL_ASSIGN(plan->timeline, timeline_of(plan->prepared()));
      }
      *text = plan->timeline->c_str();
    } else {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("a plan has no text '{}'", wanted),
                   {},
                   "choose table or timeline"};
    }
    return Ok{};
  });
}
