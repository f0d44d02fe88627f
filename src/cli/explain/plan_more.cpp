#include "cli/explain/plan_more.h"

#include <fmt/format.h>

#include <cstdio>

#include "analysis/card_table.h"
#include "analysis/choose_batch.h"
#include "analysis/frontier.h"
#include "analysis/sweep.h"
#include "base/host.h"
#include "cli/explain/planning_line.h"
#include "cli/terminal.h"
#include "io/file.h"
#include "strategy/plan_cache.h"
#include "strategy/run_device.h"

namespace plimsoll::cli {

namespace {

/// Reports alone.
strategy::PrepareOptions planning(const settings::RunConfig& config) {
  return {.num_threads = strategy::num_threads(config), .request = strategy::PlanRequest::kReport};
}

void print(const io::Tree& event, const std::string& text, bool json) {
  if (json)
    std::puts(io::to_json(event).c_str());
  else
    print_text(text);
}

}  // namespace

Status plan_frontier(const settings::RunConfig& config, const std::string& svg, bool json) {
  const strategy::PrepareOptions options = planning(config);
  const auto target = strategy::make_target(config, options.num_threads);
  PlanningLine progress("budgets");
  strategy::PlanCache cache;
  PLIMSOLL_ASSIGN(const strategy::Prepared base, strategy::prepare(config, *target, options, cache));
  if (!base.report.has_time())
    return Error{ErrorCode::kInvalidArgument, "no rates of this card are known: a frontier compares times",
                 "--frontier", "name the card whose rates to take, such as runtime.profile=rtx4090"};
  PLIMSOLL_ASSIGN(const analysis::Frontier frontier,
                  analysis::plan_frontier(strategy::Variants(config, *target, options, std::move(cache)),
                                          base, progress.teller()));
  progress.end();
  if (!svg.empty()) PLIMSOLL_TRY(io::write_file_atomically(svg, analysis::frontier_svg(frontier)));
  print(analysis::frontier_event(frontier), analysis::frontier_table(frontier), json);
  return Ok{};
}

Status plan_sweep(const settings::RunConfig& config, const std::vector<std::string>& texts, bool json) {
  std::vector<analysis::SweepAxis> axes;
  for (const std::string& text : texts) {
    PLIMSOLL_ASSIGN(analysis::SweepAxis axis, analysis::parse_sweep(text, config));
    axes.push_back(std::move(axis));
  }
  const strategy::PrepareOptions options = planning(config);
  const auto target = strategy::make_target(config, options.num_threads);
  PlanningLine progress("rows");
  PLIMSOLL_ASSIGN(
      const analysis::Sweep sweep,
      analysis::plan_sweep(strategy::Variants(config, *target, options), std::move(axes), progress.teller()));
  progress.end();
  print(analysis::sweep_event(sweep), analysis::sweep_table(sweep), json);
  return Ok{};
}

Result<settings::RunConfig> with_chosen_batch(const settings::RunConfig& config, bool shows, bool json) {
  if (!config.training.chooses_global_batch_size) return config;
  const strategy::PrepareOptions options = planning(config);
  const auto target = strategy::make_target(config, options.num_threads);
  PlanningLine progress("batches");
  PLIMSOLL_ASSIGN(const analysis::BatchChoice choice,
                  analysis::choose_batch(strategy::Variants(config, *target, options)));
  progress.end();
  if (shows) {
    print(analysis::batches_event(choice), analysis::batches_table(choice), json);
    if (!json) std::puts("");
  }
  const std::string& batch = choice.curve.rows[choice.chosen].values[0];
  note("training.global_batch_size: auto is " + batch);
  return strategy::with_settings(config, {{"training.global_batch_size", batch}});
}

Status plan_cards(const RunArguments& arguments) {
  // Without a run file the first override stands in its place.
  std::vector<std::string> overrides = arguments.overrides;
  const bool has_file = !arguments.file.empty() && arguments.file.find('=') == std::string::npos;
  if (!has_file && !arguments.file.empty()) overrides.insert(overrides.begin(), arguments.file);
  PLIMSOLL_ASSIGN(
      const settings::RunConfig config,
      has_file ? settings::load_run_config(arguments.file, overrides)
               : settings::parse_run_config(analysis::card_table_run(), "the run of the table", overrides));
  PlanningLine progress("cards");
  PLIMSOLL_ASSIGN(const std::vector<analysis::CardRow> rows,
                  analysis::plan_cards(config, planning(config), analysis::cards(), progress.teller()));
  progress.end();
  print(analysis::card_event(rows), analysis::card_table(rows), arguments.json);
  return Ok{};
}

}  // namespace plimsoll::cli
