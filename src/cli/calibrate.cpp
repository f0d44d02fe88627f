// plimsoll calibrate: measures what this machine's kernels do, for the plans to estimate with.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "base/host.h"
#include "base/process.h"
#include "cli/bench/measured_runs.h"
#include "cli/commands.h"
#include "cli/profile/rates_text.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "io/file.h"
#include "io/json.h"
#include "measuring/machine_rates.h"
#include "strategy/machine_rates.h"

namespace plimsoll::cli {
namespace {

struct CalibrateArguments {
  std::vector<std::string> from;
  std::string output, disk = ".";
  bool json = false;
};

/// The profile in use, with what those runs took.
Result<planner::MachineProfile> corrected(const std::vector<std::string>& folders) {
  const std::string path = strategy::calibrated_path();
  if (path.empty() || access(path.c_str(), F_OK) != 0)
    return Error{ErrorCode::kInvalidArgument, "there is no profile that could be corrected", "--from",
                 "run 'plimsoll calibrate' first, then the runs, then this"};
  PLIMSOLL_ASSIGN(planner::MachineProfile profile, planner::load_profile(path));
  std::vector<planner::StepTimes> runs;
  for (const std::string& folder : folders) {
    PLIMSOLL_ASSIGN(planner::StepTimes times, read_measured_run(folder));
    const std::vector<planner::StepTimes> one = {times};
    if (const auto checked = planner::with_measured(profile, one); !checked)
      return Error{checked.error().code, checked.error().what, folder, checked.error().hint};
    runs.push_back(std::move(times));
  }
  return planner::with_measured(std::move(profile), runs);
}

Result<planner::MachineProfile> measured(const std::string& disk) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::canonical(disk, error);
  if (error) return Error{ErrorCode::kInvalidArgument, error.message(), disk, "give --disk a folder"};
  Progress progress;
  planner::MachineProfile profile = measuring::calibrated_rates(
      folder, [&](double fraction, const std::string& what) { progress.show(fraction, what); }, note);
  progress.finish();
  profile.name = strategy::machine_name();
  return profile;
}

std::string rates_text(const planner::MachineProfile& p) {
  const auto giga = [](double rate) { return rate * 1e-9; };
  std::string text = fmt::format(
      "  products      {:.0f} GFLOP/s in fp32, {:.0f} in bf16, {:.0f} in fp16\n"
      "  attention     {:.0f} GFLOP/s in fp32, {:.0f} in bf16, {:.0f} in fp16\n"
      "  memory        {:.1f} GB/s, in the cache {:.1f}, updates {:.1f}\n"
      "  an op         {:.2g} us\n",
      giga(p.product_flops[0]), giga(p.product_flops[2]), giga(p.product_flops[3]),
      giga(p.attention_flops[0]), giga(p.attention_flops[2]), giga(p.attention_flops[3]),
      giga(p.memory_bandwidth), giga(p.cache_bandwidth), giga(p.optimizer_bandwidth), 1e6 * p.launch_seconds);
  for (const planner::ThreadShares& s : p.fewer_threads)
    text += fmt::format("  {:<14}{:.2f} of it in products, {:.2f} attention, {:.2f} memory-bound\n",
                        fmt::format("{} thread{}", s.threads, s.threads == 1 ? "" : "s"), s.products,
                        s.attention, s.memory_bound);
  return text + copies_text(p);
}

Status calibrate(const CalibrateArguments& arguments) {
  std::string path = arguments.output.empty() ? strategy::calibrated_path() : arguments.output;
  if (path.empty())
    return Error{ErrorCode::kIo, "there is no cache folder to keep the profile in", "",
                 "set XDG_CACHE_HOME or HOME, or give --output FILE"};
  const double start = now_seconds();
  planner::MachineProfile profile;
  if (arguments.from.empty()) {
    PLIMSOLL_ASSIGN(profile, measured(arguments.disk));
  } else {
    PLIMSOLL_ASSIGN(profile, corrected(arguments.from));
  }
  if (arguments.output.empty()) {
    std::error_code error;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
    if (error) return Error{ErrorCode::kIo, error.message(), path, "give --output FILE"};
  }
  const std::string text = planner::profile_json(profile);
  PLIMSOLL_TRY(io::write_file_atomically(path, text));
  if (arguments.json) {
    PLIMSOLL_ASSIGN(io::Tree tree, io::parse_json(text));
    fmt::print("{}\n", io::to_json(io::Tree::map({{"event", io::Tree::of(std::string("calibrate"))},
                                                  {"path", io::Tree::of(path)},
                                                  {"seconds", io::Tree::of(now_seconds() - start)},
                                                  {"profile", std::move(tree)}})));
    return Ok{};
  }
  if (!arguments.from.empty()) {
    std::string lines =
        fmt::format("{}: seconds by kind of op, against what was measured alone\n", profile.name);
    for (const planner::OpFactor& f : profile.factors)
      lines += fmt::format("  {:<28}{:<6}{:>8.3f}\n", f.kind, name(f.type), f.factor);
    print_text(lines + fmt::format("Kept in {}\n", path));
    return Ok{};
  }
  print_text(fmt::format("{}, {} threads, {}: measured in {:.0f} s\n{}Kept in {}\n", profile.name,
                         profile.threads, profile.instruction_set, now_seconds() - start, rates_text(profile),
                         path));
  return Ok{};
}

}  // namespace

Command add_calibrate(Parser app) {
  return add_command<CalibrateArguments>(
      app, "calibrate", "measure this machine, so that plans can estimate the time of a step",
      [](Parser command, CalibrateArguments& a) {
        command
            .add_option(
                "--from", a.from,
                "measure nothing: correct the profile by the step times of the run or profile in this folder")
            .type_name("DIR");
        command
            .add_option("--output", a.output,
                        "write the profile only to this file; runtime.profile=FILE uses it")
            .type_name("FILE");
        command
            .add_option("--disk", a.disk,
                        "measure the disk of this folder (for offload); default: the working folder")
            .type_name("DIR");
        command.add_flag("--json", a.json, "print one JSON object on stdout and nothing else");
        command.footer(
            "Takes up to a minute, on a quiet machine. Without --output the profile is kept in\n"
            "$XDG_CACHE_HOME/plimsoll (or ~/.cache/plimsoll) and used by plan, train and eval from then on.\n"
            "--from may be given several times; runs count that were estimated by the profile in use.\n"
            "exit codes: 0, 2 for a run of another machine or profile, 65 damaged, 74 I/O");
      },
      calibrate);
}

}  // namespace plimsoll::cli
