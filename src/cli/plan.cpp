// plimsoll plan: what a run needs, without data or weights; with --diff, what another run needs beside it.
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "base/host.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/explain/explain_memory.h"
#include "cli/explain/explain_memory_rows.h"
#include "cli/explain/explain_precision.h"
#include "cli/explain/plan_more.h"
#include "cli/explain/planning_line.h"
#include "cli/load_run.h"
#include "cli/terminal.h"
#include "engine/engine.h"
#include "io/check_writable.h"
#include "planner/report/headline.h"
#include "planner/report/memory_snapshot.h"
#include "planner/report/report_diff.h"
#include "preprocessing/run_data.h"
#include "preprocessing/run_task.h"
#include "settings/settings.h"
#include "settings/state_settings.h"
#include "strategy/image_features.h"
#include "strategy/plan_cache.h"
#include "strategy/rank_mode.h"
#include "strategy/run_device.h"
#include "telemetry/events.h"

namespace plimsoll::cli {
namespace {

/// What else `plan` says and writes.
struct PlanOutput {
  std::string dump_ir, explain, svg, snapshot;
  bool frontier = false, table = false;
  std::vector<std::string> sweep;
};

/// Files come first: where one cannot be written, nothing is printed.
Status plan(const RunArguments& arguments, const PlanOutput& output) {
  if (output.table) return plan_cards(arguments);
  if (arguments.file.empty())
    return Error{ErrorCode::kInvalidArgument, "the run file is missing", "plimsoll plan",
                 "see plimsoll plan --help"};
  if (!output.svg.empty() && output.explain != "memory" && !output.frontier)
    return Error{ErrorCode::kInvalidArgument, "--svg needs --explain memory or --frontier", output.svg,
                 "add one of them"};
  for (const std::string& file : {output.svg, output.snapshot})
    if (!file.empty()) PLIMSOLL_TRY(io::check_writable(file));
  PLIMSOLL_ASSIGN(settings::RunConfig config, load_run(arguments));
  for (const std::string& line :
       preprocessing::missing_data(config.data, preprocessing::takes_images(config)))
    note(line);
  if (const std::string line = preprocessing::unasked_bytes_note(config); !line.empty()) note(line);
  const bool alone = !output.frontier && output.sweep.empty();
  if (output.sweep.empty()) {
    PLIMSOLL_ASSIGN(config, with_chosen_batch(config, alone, arguments.json));
  }
  if (output.frontier) return plan_frontier(config, output.svg, arguments.json);
  if (!output.sweep.empty()) return plan_sweep(config, output.sweep, arguments.json);
  const strategy::PrepareOptions options{.num_threads = strategy::num_threads(config),
                                         .dump_ir = output.dump_ir};
  PLIMSOLL_ASSIGN(
      config, strategy::with_rank_mode(config, *strategy::make_target(config, options.num_threads), options,
                                       [](const std::string& line) { note(line); }));
  PlanningLine progress;
  strategy::PlanCache cache;
  PLIMSOLL_ASSIGN(strategy::Prepared prepared, engine::Engine::plan(config, options, cache));
  engine::Engine::explain(config, options, prepared, std::move(cache));
  progress.end();
  if (const std::string line = strategy::feature_note(*prepared.task); !line.empty()) note(line);
  std::optional<MemoryExplanation> memory;
  if (output.explain == "memory") memory.emplace(prepared);
  if (!output.svg.empty()) PLIMSOLL_TRY(memory->write_svg(output.svg));
  if (!output.snapshot.empty()) {
    const passes::SessionPlan& session = prepared.programs.session;
    PLIMSOLL_ASSIGN(io::AtomicFile file, io::AtomicFile::create(output.snapshot));
    PLIMSOLL_TRY(planner::save_memory_snapshot(session, planner::planned_runs(session), file));
  }
  Console console(arguments.json);
  telemetry::Events(console).plan(prepared.report, telemetry::PlanDetail::kAll);
  if (memory) {
    if (!arguments.json && !prepared.report.fits) print_text("\n" + planner::why_not(prepared.report));
    memory->print(arguments.json);
    print_techniques(config, prepared, arguments.json);
  }
  if (output.explain == "precision") {
    if (!arguments.json) std::puts("");
    const planner::TrainingPrograms& programs = prepared.programs;
    print_precision(programs.precision,
                    planner::weights_of(*prepared.model, programs.session,
                                        settings::state_choice(config.training, config.lora.enabled).dtypes,
                                        /*accumulates=*/!programs.gradients.empty()),
                    arguments.json);
  }
  if (!prepared.report.fits) return strategy::does_not_fit(prepared);
  return Ok{};
}

std::vector<planner::SettingDifference> differing_settings(const settings::RunConfig& a,
                                                           const settings::RunConfig& b) {
  std::vector<planner::SettingDifference> differences;
  for (const settings::Setting& setting : settings::settings()) {
    std::string text_a = settings::setting_text(setting, a), text_b = settings::setting_text(setting, b);
    if (text_a != text_b) differences.push_back({setting.path, std::move(text_a), std::move(text_b)});
  }
  return differences;
}

/// The overrides go over both files. A plan that does not fit is a finding here, no error.
Status diff(const std::string& file_a, const RunArguments& arguments) {
  PLIMSOLL_ASSIGN(const settings::RunConfig a, settings::load_run_config(file_a, arguments.overrides));
  PLIMSOLL_ASSIGN(const settings::RunConfig b,
                  settings::load_run_config(arguments.file, arguments.overrides));
  planner::PlanDiff diff{file_a, arguments.file, {}, {}, differing_settings(a, b)};
  PlanningLine progress;
  PLIMSOLL_ASSIGN(const strategy::Prepared prepared_a, engine::Engine::plan(a, {strategy::num_threads(a)}));
  PLIMSOLL_ASSIGN(const strategy::Prepared prepared_b, engine::Engine::plan(b, {strategy::num_threads(b)}));
  progress.end();
  diff.a = prepared_a.report;
  diff.b = prepared_b.report;
  // What is available moves between the two looks at it; that is no difference of the runs.
  const settings::Setting& budget = *settings::find_setting("memory.budget");
  if (settings::setting_text(budget, a) == settings::setting_text(budget, b))
    diff.b.budget_bytes = diff.a.budget_bytes;
  const std::string text =
      arguments.json ? io::to_json(plan_diff_event(diff)) + "\n" : planner::plan_diff_table(diff);
  if (arguments.json)
    std::fwrite(text.data(), 1, text.size(), stdout);
  else
    print_text(text);
  return Ok{};
}

}  // namespace

Command add_plan(Parser app) {
  Parser command = app.add_subcommand("plan", "plan a run: memory by class and phase, peak, time");
  auto arguments = std::make_shared<RunArguments>();
  auto other = std::make_shared<std::string>();
  auto output = std::make_shared<PlanOutput>();
  add_run_arguments(command, *arguments, /*required=*/false);
  const Option diff_option =
      command.add_option("--diff", *other, "compare the plan of this run file (A) with that of RUN.yaml (B)")
          .type_name("A.yaml");
  command
      .add_option("--explain", output->explain,
                  "precision: show the dtype of every op, all casts and the dtype of weights; memory: show "
                  "live bytes over the ops, the peak and its tensors, the phases, and what each technique "
                  "would save and cost")
      .one_of({"precision", "memory"})
      .excludes(diff_option);
  command.add_flag(
      "--frontier", output->frontier,
      "show step time against memory, from the smallest budget that fits to the largest that is useful");
  command.add_flag("--table", output->table,
                   "show which model fits which card; without a run file for 8 sequences of 2,048 tokens");
  command
      .add_option("--sweep", output->sweep,
                  "plan each of these values (with several --sweep each combination) and show whether it "
                  "fits, the smallest budget and the time; KEY=max finds the largest value that fits, "
                  "KEY=all plans every value")
      .repeatable()
      .type_name("KEY=V1,V2")
      .excludes(diff_option);
  command.add_option("--svg", output->svg, "write a picture of --explain memory or --frontier")
      .type_name("FILE")
      .excludes(diff_option);
  command
      .add_option("--snapshot", output->snapshot,
                  "write the planned allocations as a memory snapshot for pytorch.org/memory_viz")
      .type_name("FILE")
      .excludes(diff_option);
  command
      .add_option("--dump-ir", output->dump_ir,
                  "write the text of each program after each pass to this folder")
      .type_name("DIR")
      .excludes(diff_option);
  command.footer(
      "examples: plimsoll plan run.yaml memory.budget=8GiB\n"
      "          plimsoll plan run.yaml training.precision=bf16 --explain precision\n"
      "          plimsoll plan run.yaml --explain memory --svg memory.svg     the peak explained, with a "
      "picture\n"
      "          plimsoll plan run.yaml --frontier --svg frontier.svg         what more memory buys in time\n"
      "          plimsoll plan run.yaml --sweep data.sequence_length=512,1024,2048   which of them fit\n"
      "          plimsoll plan run.yaml --sweep data.sequence_length=max      the longest that fits\n"
      "          plimsoll plan run.yaml --sweep model.preset=max --sweep lora.r=8,64    the largest model\n"
      "          plimsoll plan --table                       which model fits which card\n"
      "          plimsoll plan --diff a.yaml b.yaml          compare two plans; overrides apply to both\n"
      "exit codes: 0 fits (--diff: whatever fits), 2 run file, 65 model files, 69 does not fit, 74 I/O");
  return [arguments, other, output](const Environment&) -> Status {
    return other->empty() ? plan(*arguments, *output) : diff(*other, *arguments);
  };
}

}  // namespace plimsoll::cli
