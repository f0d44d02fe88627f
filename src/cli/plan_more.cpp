#include "cli/plan_more.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/note.h"
#include "base/terminal.h"
#include "cli/planning_line.h"
#include "io/file.h"
#include "train/card_table.h"
#include "train/choose_batch.h"
#include "train/frontier.h"
#include "train/known_ways.h"
#include "train/run_device.h"
#include "train/sweep.h"

namespace plimsoll::cli {

namespace {

/// Reports alone, and what one plan finds serves the next.
train::PrepareOptions planning(const RunConfig& config) {
  return {.num_threads = train::num_threads(config),
          .verify = false,
          .runs = false,
          .known = std::make_shared<train::KnownWays>()};
}

void print(const Tree& event, const std::string& text, bool json) {
  if (json)
    std::puts(to_json(event).c_str());
  else
    print_text(text);
}

}  // namespace

Status plan_frontier(const RunConfig& config, const std::string& svg, bool json) {
  const train::PrepareOptions options = planning(config);
  const auto target = train::make_target(config, options.num_threads);
  PlanningLine progress("budgets");
  PLIMSOLL_ASSIGN(const train::Prepared base, train::prepare(config, *target, options));
  if (!base.report.has_time())
    return Error{ErrorCode::kInvalidArgument, "no rates of this card are known: a frontier compares times",
                 "--frontier", "name the card whose rates to take, such as runtime.profile=rtx4090"};
  PLIMSOLL_ASSIGN(const train::Frontier frontier,
                  train::plan_frontier(train::Variants(config, *target, options), base, progress.teller()));
  progress.end();
  if (!svg.empty()) PLIMSOLL_TRY(write_file_atomically(svg, train::frontier_svg(frontier)));
  print(train::frontier_event(frontier), train::frontier_table(frontier), json);
  return Ok{};
}

Status plan_sweep(const RunConfig& config, const std::vector<std::string>& texts, bool json) {
  std::vector<train::SweepAxis> axes;
  for (const std::string& text : texts) {
    PLIMSOLL_ASSIGN(train::SweepAxis axis, train::parse_sweep(text, config));
    axes.push_back(std::move(axis));
  }
  const train::PrepareOptions options = planning(config);
  const auto target = train::make_target(config, options.num_threads);
  PlanningLine progress("rows");
  PLIMSOLL_ASSIGN(const train::Sweep sweep, train::plan_sweep(train::Variants(config, *target, options),
                                                              std::move(axes), progress.teller()));
  progress.end();
  print(train::sweep_event(sweep), train::sweep_table(sweep), json);
  return Ok{};
}

Result<RunConfig> with_chosen_batch(const RunConfig& config, bool shows, bool json) {
  if (!config.training.chooses_global_batch_size) return config;
  const train::PrepareOptions options = planning(config);
  const auto target = train::make_target(config, options.num_threads);
  PlanningLine progress("batches");
  PLIMSOLL_ASSIGN(const train::BatchChoice choice,
                  train::choose_batch(train::Variants(config, *target, options)));
  progress.end();
  if (shows) {
    print(train::batches_event(choice), train::batches_table(choice), json);
    if (!json) std::puts("");
  }
  const std::string& batch = choice.curve.rows[choice.chosen].values[0];
  note("training.global_batch_size: auto is " + batch);
  return train::with_settings(config, {{"training.global_batch_size", batch}});
}

Status plan_cards(const RunArguments& arguments) {
  // Without a run file the first override stands in its place.
  std::vector<std::string> overrides = arguments.overrides;
  const bool has_file = !arguments.file.empty() && arguments.file.find('=') == std::string::npos;
  if (!has_file && !arguments.file.empty()) overrides.insert(overrides.begin(), arguments.file);
  PLIMSOLL_ASSIGN(const RunConfig config,
                  has_file ? load_run_config(arguments.file, overrides)
                           : parse_run_config(train::card_table_run(), "the table's run", overrides));
  PlanningLine progress("cards");
  PLIMSOLL_ASSIGN(const std::vector<train::CardRow> rows,
                  train::plan_cards(config, planning(config), train::cards(), progress.teller()));
  progress.end();
  print(train::card_event(rows), train::card_table(rows), arguments.json);
  return Ok{};
}

}  // namespace plimsoll::cli
