// plimsoll bench: offsets (the offset search on recorded lifetimes), kernels, step (training steps on drawn
// tokens), data (a run's data without the training).
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>

#include "base/process.h"
#include "cli/bench/bench_data.h"
#include "cli/bench/bench_kernels.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "io/tree.h"
#include "memory/cases.h"
#include "strategy/run_device.h"
#include "telemetry/run_record.h"
#include "training/trainer.h"

namespace plimsoll::cli {
namespace {

struct OffsetArguments {
  std::vector<std::string> files;
  bool json = false;
};

Status bench_offsets(const OffsetArguments& arguments) {
  if (!arguments.json)
    fmt::print("{:<40}{:>9}{:>16}{:>16}{:>10}  optimal\n", "file", "buffers", "lower bound", "height",
               "seconds");
  for (const std::string& file : arguments.files) {
    memory::OffsetOptions options = memory::case_options();
    options.num_threads = num_available_cpus();
    PLIMSOLL_ASSIGN(const memory::CaseReport r, memory::run_case(file, options));
    if (arguments.json)
      fmt::print("{}\n", io::to_json(io::Tree::map({{"file", io::Tree::of(r.file)},
                                                    {"buffers", io::Tree::of(r.buffers)},
                                                    {"lower_bound", io::Tree::of(r.lower_bound)},
                                                    {"height", io::Tree::of(r.height)},
                                                    {"seconds", io::Tree::of(r.seconds)},
                                                    {"optimal", io::Tree::of(r.optimal)}})));
    else
      fmt::print("{:<40}{:>9}{:>16}{:>16}{:>10.3f}  {}\n", file, r.buffers, r.lower_bound, r.height,
                 r.seconds, r.optimal ? "yes" : "not optimal");
    std::fflush(stdout);
  }
  return Ok{};
}

struct StepArguments {
  RunArguments run;
  int64_t steps = 10;
  bool interactive = false;
  bool timings = false;
};

/// Seconds by kind of op of the last step, the slowest first.
void print_timings(training::Trainer& trainer) {
  const auto& programs = trainer.session().plan().programs;
  for (size_t p = 0; p < programs.size(); ++p) {
    std::vector<std::pair<std::string, double>> by_op;
    for (const runtime::TimedOp& timed : trainer.session().timed_ops(static_cast<int>(p))) {
      const std::string_view name = timed.op->def->name;
      const auto it =
          std::find_if(by_op.begin(), by_op.end(), [&](const auto& e) { return e.first == name; });
      if (it == by_op.end())
        by_op.emplace_back(name, timed.seconds);
      else
        it->second += timed.seconds;
    }
    std::sort(by_op.begin(), by_op.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    for (const auto& [op, seconds] : by_op)
      if (seconds > 0)
        fmt::print(stderr, "  {:<12}{:<26}{:>10.2f} ms\n", programs[p].graph.name, op, 1e3 * seconds);
  }
}

Result<double> run_steps(training::Trainer& trainer, int64_t steps, telemetry::RunRecord& record) {
  double seconds = 0;
  for (int64_t i = 0; i < steps; ++i) {
    PLIMSOLL_ASSIGN(const training::StepEvent event, trainer.step());
    seconds += event.seconds;
    record.add(event);
  }
  return seconds;
}

/// `per_step`: the units of the task, padding included.
void print_round(int64_t steps, double seconds, const planner::PlanReport& per_step) {
  fmt::print("{}\n", io::to_json(io::Tree::map({{"event", io::Tree::of(std::string("round"))},
                                                {"steps", io::Tree::of(steps)},
                                                {"seconds", io::Tree::of(seconds)},
                                                {per_step.unit, io::Tree::of(steps * per_step.units)}})));
  std::fflush(stdout);
}

/// "go N" on stdin runs N steps; end of input ends the benchmark.
Status bench_interactively(training::Trainer& trainer, telemetry::RunRecord& record) {
  for (std::string line; std::getline(std::cin, line);) {
    int64_t steps = 0;
    if (std::sscanf(line.c_str(), "go %ld", &steps) != 1 || steps < 1)
      return Error{ErrorCode::kInvalidArgument, "expected 'go N' on stdin", line,
                   "write 'go 3' to run three steps"};
    PLIMSOLL_ASSIGN(const double seconds, run_steps(trainer, steps, record));
    print_round(steps, seconds, trainer.prepared().report);
    record.resume();
  }
  return Ok{};
}

Status bench_step(const StepArguments& arguments, const Environment& environment) {
  PLIMSOLL_ASSIGN(const settings::RunConfig config,
                  settings::load_run_config(arguments.run.file, arguments.run.overrides));
  const int threads = strategy::num_threads(config);
  PLIMSOLL_ASSIGN(strategy::Prepared prepared,
                  strategy::prepare(config, *strategy::make_target(config, threads), {threads, {}}));
  if (!prepared.report.fits) return strategy::does_not_fit(prepared);
  Console console(arguments.run.json);
  telemetry::Events events(console);
  events.plan(prepared.report, telemetry::PlanDetail::kShort);
  PLIMSOLL_ASSIGN(const auto device, strategy::make_device(config, threads, prepared));
  PLIMSOLL_ASSIGN(const auto trainer,
                  training::Trainer::create(config, std::move(prepared), *device, {.synthetic_data = true}));
  const planner::PlanReport& report = trainer->prepared().report;
  PLIMSOLL_TRY(trainer->session().enable_timing(arguments.timings));
  telemetry::RunRecord record(environment.process_start_seconds);
  if (arguments.interactive) {
    PLIMSOLL_TRY(bench_interactively(*trainer, record));
  } else {
    PLIMSOLL_TRY(run_steps(*trainer, 1, record));
    PLIMSOLL_ASSIGN(const double rest, run_steps(*trainer, arguments.steps, record));
    if (arguments.run.json) print_round(arguments.steps, rest, report);
  }
  if (arguments.timings) print_timings(*trainer);
  events.summary(record.summary(*trainer));
  if (const double median = record.median_seconds(); !arguments.run.json && median > 0)
    fmt::print("step: median {:.4f} s, {:.0f} {}/s, {:.1f} GFLOP/s\n", median,
               static_cast<double>(report.units) / median, report.unit, report.flops / median * 1e-9);
  return Ok{};
}

}  // namespace

Command add_bench(Parser app) {
  Parser bench = app.add_subcommand("bench", "benchmark a part: offsets, kernels, step, data");
  bench.require_subcommand();
  auto offset_arguments = std::make_shared<OffsetArguments>();
  Parser offsets =
      bench.add_subcommand("offsets", "assign offsets to recorded lifetimes (CSV: id,lower,upper,size)");
  offsets
      .add_option(
          "files", offset_arguments->files,
          "files of lifetimes; a number in a file's name is the size limit of its arena: A.1048576.csv")
      .required()
      .type_name("FILE.csv");
  offsets.add_flag("--json", offset_arguments->json, "print one JSON object per line");
  offsets.footer("example: plimsoll bench offsets cases/*.csv --json");
  auto kernels_json = std::make_shared<bool>(false);
  Parser kernels = bench.add_subcommand("kernels", "measure the rates of the kernels");
  kernels.add_flag("--json", *kernels_json, "print one JSON object per line");
  auto step_arguments = std::make_shared<StepArguments>();
  Parser step =
      bench.add_subcommand("step", "measure training steps on random examples; data.train is not read");
  add_run_arguments(step, step_arguments->run);
  step.add_option("--steps", step_arguments->steps, "steps after the first").range(1, 1'000'000);
  step.add_flag("--interactive", step_arguments->interactive, "run N steps for each line 'go N' on stdin");
  step.add_flag("--timings", step_arguments->timings, "print the seconds of the last step by op on stderr");
  step.footer("example: plimsoll bench step run.yaml --steps 20");
  auto data_arguments = std::make_shared<BenchDataArguments>();
  Parser data =
      bench.add_subcommand("data", "measure the data loader by workers, prefetch, packing and cache");
  add_run_arguments(data, data_arguments->run);
  data.add_option("--milliseconds", data_arguments->milliseconds, "milliseconds per setting")
      .range(10, 3'600'000);
  data.footer("example: plimsoll bench data run.yaml --milliseconds 2000");
  return [=](const Environment& environment) -> Status {
    if (data.parsed()) return bench_data(*data_arguments);
    if (offsets.parsed()) return bench_offsets(*offset_arguments);
    if (kernels.parsed()) return bench_kernels(*kernels_json);
    return bench_step(*step_arguments, environment);
  };
}

}  // namespace plimsoll::cli
