// plimsoll calibrate: measures what the kernels of this machine or of its card do, for the plans to estimate
// with.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/host.h"
#include "base/process.h"
#include "cli/bench/measured_runs.h"
#include "cli/commands.h"
#include "cli/profile/rates_text.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "io/check_writable.h"
#include "io/file.h"
#include "io/json.h"
#include "measuring/machine_rates.h"
#include "planner/cost/known_profiles.h"
#include "strategy/card_products.h"
#include "strategy/machine_rates.h"
#include "strategy/run_card.h"
#include "strategy/run_device.h"

namespace plimsoll::cli {
namespace {

struct CalibrateArguments {
  std::vector<std::string> from;
  std::string output, disk = ".", device = "cpu", products;
  bool json = false;
};

/// A profile, and where plans look for it.
struct Kept {
  planner::MachineProfile profile;
  std::string path;
};

/// Where the profile of that name lies: this machine's, or its card's.
std::string path_of(const std::string& machine) {
  if (machine == strategy::machine_name()) return strategy::calibrated_path();
  const auto version = devices::product_library_version();
  return version ? strategy::calibrated_card_path(machine, *version) : strategy::calibrated_path();
}

/// The profile in use, with what those runs took.
Result<Kept> corrected(const std::vector<std::string>& folders) {
  std::string path;
  planner::MachineProfile profile;
  std::vector<planner::StepTimes> runs;
  for (const std::string& folder : folders) {
    auto read = read_measured_run(folder);
    if (runs.empty()) {
      path = read ? path_of(read->machine) : strategy::calibrated_path();
      if (path.empty() || access(path.c_str(), F_OK) != 0)
        return Error{ErrorCode::kInvalidArgument, "there is no profile that could be corrected", "--from",
                     "run 'plimsoll calibrate' first, then the runs, then this"};
      PLIMSOLL_ASSIGN(profile, planner::load_profile(path));
    }
    if (!read) return std::move(read).error();
    planner::StepTimes times = std::move(*read);
    const std::vector<planner::StepTimes> one = {times};
    if (const auto checked = planner::with_measured(profile, one); !checked)
      return Error{checked.error().code, checked.error().what, folder, checked.error().hint};
    runs.push_back(std::move(times));
  }
  PLIMSOLL_ASSIGN(profile, planner::with_measured(std::move(profile), runs));
  return Kept{std::move(profile), path};
}

/// Of a card that is here.
Result<Kept> measured_card(const std::string& device) {
  settings::RunConfig config;
  config.runtime.device = device;
  const auto card = strategy::run_card(config);
  if (!card)
    return Error{ErrorCode::kInvalidArgument, "--device takes cpu, cuda, cuda:1, …", device,
                 "use --device cuda for the first card"};
  PLIMSOLL_TRY(strategy::check_card_is_here(config));
  PLIMSOLL_ASSIGN(const int64_t version, devices::product_library_version());
  planner::MachineProfile start = card->profile ? *card->profile : planner::card_of_no_known_rates();
  start.name = card->name;
  start.instruction_set = fmt::format("sm_{}", card->capability);
  start.memory_bytes = card->bytes + card->context_bytes;
  start.context_bytes = card->context_bytes;
  Progress progress;
  auto profile =
      measuring::card_rates(strategy::device_spec(config, strategy::num_threads(config)), std::move(start),
                            [&](double fraction, const std::string& what) { progress.show(fraction, what); });
  progress.finish();
  if (!profile) return std::move(profile).error();
  profile->source += fmt::format(", cuBLASLt {}", version);
  return Kept{std::move(*profile), strategy::calibrated_card_path(card->name, version)};
}

/// Another algorithm than the library's favourite for the products of that run that are quicker so.
Status tune(const CalibrateArguments& arguments) {
  PLIMSOLL_ASSIGN(settings::RunConfig config, settings::load_run_config(arguments.products, {}));
  if (!config.runtime.device.starts_with("cuda"))
    config.runtime.device = arguments.device == "cpu" ? "cuda" : arguments.device;
  PLIMSOLL_TRY(strategy::check_card_is_here(config));
  const int threads = strategy::num_threads(config);
  PLIMSOLL_ASSIGN(const strategy::Prepared prepared,
                  strategy::prepare(config, *strategy::make_target(config, threads), {threads, {}}));
  if (!prepared.report.fits) return strategy::does_not_fit(prepared);
  PLIMSOLL_ASSIGN(devices::DeviceSpec spec, strategy::device_spec(config, threads, prepared));
  spec.cuda.products.clear();
  PLIMSOLL_ASSIGN(const std::string text, devices::tune_products(spec));
  PLIMSOLL_ASSIGN(const int64_t version, devices::product_library_version());
  const std::string path = arguments.output.empty()
                               ? strategy::card_products_path(strategy::run_card(config)->name, version)
                               : arguments.output;
  PLIMSOLL_TRY(io::write_file_atomically(path, text));
  const auto chosen = std::ranges::count(text, '\n') - 3;  // title, library and checksum
  if (arguments.json)
    fmt::print("{}\n", io::to_json(io::Tree::map({{"event", io::Tree::of(std::string("products"))},
                                                  {"path", io::Tree::of(path)},
                                                  {"chosen", io::Tree::of(int64_t{chosen})}})));
  else
    print_text(fmt::format("{} product{} with another algorithm than the library's favourite\nKept in {}\n",
                           chosen, chosen == 1 ? "" : "s", path));
  return Ok{};
}

Result<Kept> measured(const std::string& disk) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::canonical(disk, error);
  if (error) return Error{ErrorCode::kInvalidArgument, error.message(), disk, "give --disk a folder"};
  Progress progress;
  planner::MachineProfile profile = measuring::calibrated_rates(
      folder, [&](double fraction, const std::string& what) { progress.show(fraction, what); }, note);
  progress.finish();
  profile.name = strategy::machine_name();
  return Kept{std::move(profile), strategy::calibrated_path()};
}

Result<Kept> made(const CalibrateArguments& arguments) {
  if (!arguments.from.empty()) return corrected(arguments.from);
  return arguments.device == "cpu" ? measured(arguments.disk) : measured_card(arguments.device);
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

/// Before anything is measured: what is kept lies beside calibrated_path() where no file is named.
Status check_output(const CalibrateArguments& arguments) {
  if (!arguments.output.empty()) return io::check_writable(arguments.output);
  const std::string path = strategy::calibrated_path();
  if (path.empty())
    return Error{ErrorCode::kIo, "there is no cache folder to keep the profile in", "",
                 "set XDG_CACHE_HOME or HOME, or give --output FILE"};
  Status can_write = io::create_writable_directory(io::folder_of(path));
  if (can_write) return can_write;
  Error error = std::move(can_write).error();
  error.hint = "give --output FILE";
  return error;
}

Status calibrate(const CalibrateArguments& arguments) {
  PLIMSOLL_TRY(check_output(arguments));
  if (!arguments.products.empty()) return tune(arguments);
  const double start = now_seconds();
  PLIMSOLL_ASSIGN(const Kept kept, made(arguments));
  const planner::MachineProfile& profile = kept.profile;
  const std::string path = arguments.output.empty() ? kept.path : arguments.output;
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
  const std::string threads = profile.memory_bytes > 0 ? "" : fmt::format("{} threads, ", profile.threads);
  print_text(fmt::format("{}, {}{}: measured in {:.0f} s\n{}Kept in {}\n", profile.name, threads,
                         profile.instruction_set, now_seconds() - start, rates_text(profile), path));
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
        command
            .add_option("--device", a.device,
                        "measure this card instead of the CPU: cuda, or cuda:1 for the second")
            .type_name("DEVICE");
        command
            .add_option("--products", a.products,
                        "only time the card's algorithms for the matrix products of this run file")
            .type_name("RUN.yaml");
        command.add_flag("--json", a.json, "print one JSON object on stdout and nothing else");
        command.footer(
            "Takes up to a minute, on a quiet machine. Without --output the profile is kept in\n"
            "$XDG_CACHE_HOME/plimsoll (or ~/.cache/plimsoll) and used by plan, train and eval from then on.\n"
            "--from may be given several times; only runs that were planned with the current profile count.\n"
            "exit codes: 0, 2 for a run of another machine or profile, 65 damaged, 74 I/O");
      },
      calibrate);
}

}  // namespace plimsoll::cli
