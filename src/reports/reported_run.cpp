#include "reports/reported_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "io/file.h"
#include "io/json.h"
#include "settings/settings.h"
#include "strategy/prepare.h"
#include "strategy/run_device.h"
#include "telemetry/run_log.h"
#include "telemetry/run_plan.h"

namespace plimsoll::reports {
namespace {

constexpr int64_t kMostFileBytes = 8 << 20;

/// A small file of the folder; nothing where there is none.
std::optional<std::string> text_in(const std::string& path, std::vector<std::string>& notes) {
  if (!io::is_file(path)) return std::nullopt;
  auto text = io::read_small_file(path, kMostFileBytes);
  if (text) return std::move(*text);
  notes.push_back(text.error().message());
  return std::nullopt;
}

io::Tree json_in(const std::string& path, std::vector<std::string>& notes) {
  const auto text = text_in(path, notes);
  if (!text) return {};
  auto tree = io::parse_json(*text, {.max_bytes = kMostFileBytes, .max_nodes = 400'000});
  if (tree) return std::move(*tree);
  notes.push_back(std::move(tree.error()).at(path).message());
  return {};
}

std::vector<SettingRow> setting_rows(const settings::RunConfig& config) {
  const settings::RunConfig usual;
  std::vector<SettingRow> rows;
  for (const settings::Setting& setting : settings::settings())
    if (setting.field != nullptr)
      rows.push_back(
          {setting.path, settings::setting_text(setting, config), settings::setting_text(setting, usual)});
  return rows;
}

/// As the run was split and on as many threads: its plan depends on both.
settings::RunConfig as_it_ran(settings::RunConfig config, const ReportedRun& run) {
  const io::Tree* choices = run.events.plan.find("choices");
  const io::Tree* micro = choices == nullptr ? nullptr : choices->find("micro_batch_size");
  if (micro != nullptr && micro->kind == io::Tree::Kind::kInteger && micro->integer > 0 &&
      config.training.global_batch_size % micro->integer == 0) {
    config.training.micro_batch_size = micro->integer;
    config.training.gradient_accumulation_steps.reset();
  }
  const io::Tree* threads = run.environment.find("threads");
  if (threads != nullptr && threads->integer > 0 && threads->integer <= 1024)
    config.runtime.threads = threads->integer;
  return config;
}

Result<ReportedPlan> plan_again(const settings::RunConfig& config, Planning planning) {
  const int threads = strategy::num_threads(config);
  const auto target = strategy::make_target(config, threads);
  const strategy::PrepareOptions options{.num_threads = threads, .looks_at_data = false};
  PLIMSOLL_ASSIGN(const strategy::Prepared prepared, strategy::prepare(config, *target, options));
  const passes::SessionPlan& session = prepared.programs.session;
  ReportedPlan plan{prepared.report.device_is_process,
                    false,
                    planner::memory_timeline(session, planner::peak_program(session)),
                    {}};
  if (planning == Planning::kAll || prepared.report.planning_seconds <= kQuickPlanSeconds)
    plan.techniques = analysis::plan_techniques(strategy::Variants(config, *target, options), prepared);
  return plan;
}

/// As the run has written it down; nothing where it has not, or somebody else has.
std::optional<telemetry::RunPlan> kept_plan(ReportedRun& run) {
  const auto text = text_in(fmt::format("{}/{}", run.folder, telemetry::kPlanFile), run.notes);
  if (!text) return std::nullopt;
  auto plan = telemetry::parse_run_plan(*text);
  if (plan) return std::move(*plan);
  run.notes.push_back(plan.error().message());
  return std::nullopt;
}

void read_settings(ReportedRun& run, Planning planning) {
  auto kept = kept_plan(run);
  if (kept) run.plan = ReportedPlan{kept->device_is_process, true, std::move(kept->timeline), {}};
  const std::string path = run.folder + "/run.yaml";
  const auto text = text_in(path, run.notes);
  if (!text) {
    run.notes.push_back(fmt::format("there is no run.yaml, so settings{} and techniques are left out",
                                    kept ? "" : ", memory over a step"));
    return;
  }
  const auto config = settings::parse_recorded_run(*text, path);
  if (!config) {
    run.notes.push_back("run.yaml: " + config.error().message());
    return;
  }
  run.settings = setting_rows(*config);
  if (planning == Planning::kNone) return;
  if (planning == Planning::kQuick && kept && kept->planning_seconds > kQuickPlanSeconds) return;
  auto plan = plan_again(as_it_ran(*config, run), planning);
  if (!plan)
    run.notes.push_back(fmt::format("planning the run again failed, so {} left out: {}",
                                    kept ? "techniques are" : "memory over a step is",
                                    plan.error().message()));
  else if (kept)
    run.plan->techniques = std::move(plan->techniques);
  else
    run.plan = std::move(*plan);
}

/// "runs/one" of runs/one/ as of runs/one.
std::string tidy(const std::string& folder) {
  const std::string path = std::filesystem::path(folder).lexically_normal().string();
  return path.size() > 1 && path.ends_with('/') ? path.substr(0, path.size() - 1) : path;
}

}  // namespace

Result<ReportedRun> read_run(const std::string& folder, Planning planning) {
  ReportedRun run;
  run.folder = tidy(folder);
  run.name = run.folder;
  const std::string events = fmt::format("{}/{}", run.folder, telemetry::kEventsFile);
  if (!io::is_file(events))
    return Error{ErrorCode::kBadData, "this is no folder of a run: it has no events.jsonl", folder,
                 "name a run's output.dir; plimsoll train writes events.jsonl there"};
  PLIMSOLL_ASSIGN(run.events, read_run_events(events));
  if (run.events.steps.empty() && run.events.plan.is_null() && run.events.bad_lines > 0)
    return Error{ErrorCode::kBadData, "none of its lines is an event of a run", events,
                 "name a run's output.dir; plimsoll train writes events.jsonl there"};
  run.environment = json_in(run.folder + "/environment.json", run.notes);
  for (const char* within : {"", "/profile"}) {
    if (!run.ops.is_null()) break;
    run.ops = json_in(fmt::format("{}{}/ops.json", run.folder, within), run.notes);
    run.verdict = json_in(fmt::format("{}{}/verdict.json", run.folder, within), run.notes);
  }
  read_settings(run, planning);
  run.pictures = read_pictures(run.events.last_eval, run.notes);
  return run;
}

}  // namespace plimsoll::reports
