#include "cli/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/terminal.h"
#include "cli/load_run.h"
#include "cli/progress.h"
#include "io/file.h"
#include "train/estimate_check.h"
#include "train/profile.h"
#include "train/ready_run.h"
#include "train/run_device.h"

namespace plimsoll::cli {
namespace {

constexpr int64_t kMostSteps = 100'000;
constexpr size_t kRowsShown = 20;

struct ProfileArguments {
  RunArguments run;
  train::ProfileSchedule schedule;
  std::string output = "profile";
};

/// The profile's own folder for what training needs one for: the run's is left alone.
class Scratch {
 public:
  explicit Scratch(const std::string& output) : path(output + "/.run") {}
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string path;
};

/// The run, as long as the schedule and without files of its own.
Result<RunConfig> profiled_run(const ProfileArguments& arguments, const std::string& folder) {
  PLIMSOLL_ASSIGN(RunConfig config, load_run(arguments.run));
  config.output.dir = folder;
  config.output.save_steps = 0;
  config.training.max_steps = arguments.schedule.num_steps();
  config.training.num_epochs.reset();
  config.training.load_best_model_at_end = false;
  config.debug.dump_dir.clear();
  return config;
}

Result<train::Profile> take_profile(const ProfileArguments& arguments, const RunConfig& config) {
  train::Events events(arguments.run.json, 0);
  const int threads = train::num_threads(config);
  Progress progress;
  const bool synthetic = config.data.train.empty();
  train::TrainerOptions options{.synthetic_data = synthetic, .resume = "never"};
  std::unique_ptr<runtime::Device> device;
  std::optional<train::Prepared> prepared;
  if (synthetic) {
    PLIMSOLL_ASSIGN(prepared, train::prepare(config, *train::make_target(config, threads), {threads, {}}));
    if (!prepared->report.fits) return train::does_not_fit(*prepared);
    events.plan(prepared->report, train::PlanDetail::kShort);
    PLIMSOLL_ASSIGN(device, train::make_device(config, threads));
  } else {
    PLIMSOLL_ASSIGN(train::ReadyRun ready,
                    train::make_ready(config, {threads, {}}, starts_pretrained(config.model),
                                      shown_by(progress), events));
    prepared = std::move(ready.prepared), device = std::move(ready.device);
    options.data = std::move(ready.data), options.model_files = std::move(ready.model_files);
  }
  PLIMSOLL_ASSIGN(const auto trainer, train::Trainer::create(config, std::move(*prepared), *device, options));
  PLIMSOLL_ASSIGN(train::Profile profile, train::profile_steps(*trainer, arguments.schedule));
  train::LeastTimes last;
  last.add(trainer->session());
  PLIMSOLL_TRY(
      write_file_atomically(arguments.output + "/estimate.json",
                            to_json(planner::step_times_event(train::step_times(*trainer, last))) + "\n"));
  profile.padded_tokens = config.training.global_batch_size * config.data.sequence_length;
  return profile;
}

std::string table(const Tree& ops, double step_seconds) {
  std::string out = fmt::format("{:<24}{:<26}{:>6}{:>10}{:>8}{:>10}{:>9}\n", "op", "layer", "calls", "ms",
                                "share", "GFLOP/s", "GB/s");
  size_t shown = 0;
  for (const Tree& row : ops.items) {
    if (shown++ == kRowsShown) break;
    const double seconds = std::max(1e-12, row.find("seconds")->number);
    out += fmt::format(
        "{:<24.23}{:<26.25}{:>6.3g}{:>10.3f}{:>7.1f}%{:>10.1f}{:>9.1f}\n", row.find("op")->text,
        row.find("layer")->text, row.find("calls")->number, 1e3 * seconds, 100 * seconds / step_seconds,
        1e-9 * row.find("flops")->number / seconds, 1e-9 * row.find("bytes")->number / seconds);
  }
  if (ops.items.size() > kRowsShown)
    out += fmt::format("and {} rows more in ops.json\n", ops.items.size() - kRowsShown);
  return out;
}

void print_verdict(const train::Profile& profile, const Tree& ops, bool json) {
  const auto findings = train::verdict_of(profile);
  double step = 0;
  for (const train::ProfiledStep& s : profile.steps) step += s.seconds;
  step /= static_cast<double>(profile.steps.size());
  if (json) {
    Tree list = Tree::list();
    for (const train::Finding& f : findings)
      list.items.push_back(Tree::map({{"what", Tree::of(f.what)},
                                      {"seconds", Tree::of(f.seconds)},
                                      {"share", Tree::of(f.share)},
                                      {"hint", Tree::of(f.hint)}}));
    fmt::print("{}\n", to_json(Tree::map({{"event", Tree::of(std::string("verdict"))},
                                          {"step_seconds", Tree::of(step)},
                                          {"findings", std::move(list)}})));
    return;
  }
  std::string out = table(ops, step) + fmt::format("\na step takes {:.2f} ms, of which\n", 1e3 * step);
  for (const train::Finding& f : findings)
    out += fmt::format("{:>10.2f} ms {:>5.1f}%  {}: {}\n", 1e3 * f.seconds, 100 * f.share, f.what, f.hint);
  print_text(out);
}

Status run_profile(const ProfileArguments& arguments) {
  if (arguments.schedule.num_steps() > kMostSteps)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the schedule has {} steps", arguments.schedule.num_steps()),
                 {},
                 "lower --repeat, --active, --wait, --warmup or --skip-first"};
  PLIMSOLL_TRY(create_writable_directory(arguments.output));
  const Scratch scratch(arguments.output);
  PLIMSOLL_ASSIGN(const RunConfig config, profiled_run(arguments, scratch.path));
  PLIMSOLL_ASSIGN(const train::Profile profile, take_profile(arguments, config));
  const Tree ops = train::profile_ops(profile);
  PLIMSOLL_TRY(write_file_atomically(arguments.output + "/ops.json", to_json(ops) + "\n"));
  PLIMSOLL_TRY(write_file_atomically(arguments.output + "/trace.json", train::profile_trace(profile)));
  print_verdict(profile, ops, arguments.run.json);
  return Ok{};
}

}  // namespace

Command add_profile(Parser app) {
  Parser command = app.add_subcommand("profile", "where a step's time goes: a trace, a table, a verdict");
  auto arguments = std::make_shared<ProfileArguments>();
  train::ProfileSchedule& schedule = arguments->schedule;
  add_run_arguments(command, arguments->run);
  command.add_option("--wait", schedule.wait, "steps to pass over").range(0, kMostSteps).show_default();
  command.add_option("--warmup", schedule.warmup, "steps behind those that do not count")
      .range(0, kMostSteps)
      .show_default();
  command.add_option("--active", schedule.active, "steps that are taken down")
      .range(1, kMostSteps)
      .show_default();
  command.add_option("--skip-first", schedule.skip_first, "steps before all that")
      .range(0, kMostSteps)
      .show_default();
  command.add_option("--repeat", schedule.repeat, "how often wait, warmup and active follow each other")
      .range(1, kMostSteps)
      .show_default();
  command.add_option("--output", arguments->output, "folder of trace.json and ops.json")
      .type_name("DIR")
      .show_default();
  command.footer(
      "example: plimsoll profile run.yaml --active 5 --output profile\n"
      "trace.json opens at ui.perfetto.dev; the run's own folder is left alone");
  return [arguments](const Environment&) { return run_profile(*arguments); };
}

}  // namespace plimsoll::cli
