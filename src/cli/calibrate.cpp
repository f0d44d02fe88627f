// plimsoll calibrate: measures what this machine's kernels do, for the plans to estimate with.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <vector>

#include "backends/cpu/kernels/isa.h"
#include "base/process.h"
#include "base/terminal.h"
#include "cli/calibration_samples.h"
#include "cli/commands.h"
#include "cli/measured_runs.h"
#include "cli/op_timer.h"
#include "cli/progress.h"
#include "io/file.h"
#include "io/json.h"
#include "planner/known_profiles.h"
#include "planner/op_work.h"
#include "train/run_profile.h"

namespace plimsoll::cli {
namespace {

using planner::ProductType;

/// Of each op and round. The better of two rounds: whatever else runs for a while only ever adds.
constexpr double kSecondsPerOp = 0.02;
constexpr int kRounds = 2;
constexpr double kMostSecondsBefore = 25;  ///< another round is begun
/// Operands take turns over so much: a step finds weights and what backward reads in memory, not in caches.
constexpr int64_t kSpreadBytes = int64_t{32} << 20;

/// The rates of one machine, a measurement after the other.
class Calibration {
 public:
  Calibration()
      : device_(num_available_cpus()), profile_(planner::generic_cpu(cpu::isa_name(cpu::current_isa()))) {
    profile_.name = train::machine_name();
    profile_.source = "measured by plimsoll calibrate";
    profile_.rates = "calibrated";
    profile_.threads = num_available_cpus();
    const long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
    profile_.cache_bytes = static_cast<double>(l2 > 0 ? l2 : 1 << 20) * static_cast<double>(profile_.threads);
  }

  planner::MachineProfile run(Progress& progress) {
    const std::vector<SampleGroup> groups = calibration_samples();
    std::vector<std::vector<planner::OpPoint>> rounds(kRounds);
    double done = 0;
    const double start = now_seconds();
    for (auto& points : rounds) {
      if (now_seconds() - start > kMostSecondsBefore) points = rounds[0];
      if (!points.empty()) continue;
      for (const SampleGroup& group : groups) {
        progress.show(done++ / static_cast<double>(kRounds * groups.size()), group.what);
        for (const OpSample& sample : group.samples) points.push_back(measure(sample));
      }
    }
    profile_.points = rounds[0];
    for (size_t i = 0; i < profile_.points.size(); ++i)
      profile_.points[i].rate = std::max(rounds[0][i].rate, rounds[1][i].rate);
    summarise();
    memory();
    progress.finish();
    return profile_;
  }

 private:
  planner::OpPoint measure(const OpSample& sample) {
    OpTimer timer(device_, sample, kSpreadBytes);
    const planner::OpWork of = planner::op_work(timer.types(), timer.cost());
    planner::OpPoint point{.kind = std::string(of.kind), .type = of.type};
    std::ranges::transform(of.extents, point.extents.begin(), [](double e) { return std::llround(e); });
    point.rate = of.work / timer.typical_seconds(kSecondsPerOp);
    return point;
  }

  /// Rates for what no point is near: the best of products, the mean of attention.
  void summarise() {
    for (size_t type = 0; type < planner::kNumProductTypes; ++type) {
      double best = 0, logs = 0, count = 0;
      for (const planner::OpPoint& p : profile_.points) {
        if (static_cast<size_t>(p.type) != type) continue;
        if (p.kind.starts_with("linear")) best = std::max(best, p.rate);
        if (p.kind.starts_with("attention")) logs += std::log(p.rate), ++count;
      }
      if (best > 0) profile_.product_flops[type] = best;
      if (count > 0) profile_.attention_flops[type] = std::exp(logs / count);
    }
    const auto tf32 = static_cast<size_t>(ProductType::kTf32);
    profile_.product_flops[tf32] = profile_.product_flops[0];
    profile_.attention_flops[tf32] = profile_.attention_flops[0];
  }

  /// Of sweeps that have no points.
  void memory() {
    constexpr int64_t kLarge = int64_t{8} << 20;
    const auto small = static_cast<int64_t>(profile_.cache_bytes / 24);
    profile_.cache_bandwidth = bandwidth({"add", {f32({small}), f32({small})}, {}});
    profile_.memory_bandwidth =
        std::min(profile_.cache_bandwidth, bandwidth({"add", {f32({2 * kLarge}), f32({2 * kLarge})}, {}}));
    profile_.optimizer_bandwidth =
        bandwidth({"adamw",
                   {f32({kLarge}), f32({kLarge}), f32({kLarge}), f32({kLarge}), f32({1}), f32({2, 8})},
                   {{"group", int64_t{0}}}});
    OpTimer swiglu(device_, {"swiglu", {f32({1, 64, 3072})}, {}});
    profile_.vector_flops = swiglu.cost().flops / swiglu.typical_seconds(kSecondsPerOp);
    profile_.launch_seconds =
        OpTimer(device_, {"add", {f32({16}), f32({16})}, {}}).typical_seconds(kSecondsPerOp);
    profile_.copy_in_bandwidth = profile_.copy_out_bandwidth = profile_.memory_bandwidth / 2;
  }
  double bandwidth(const OpSample& sample) {
    OpTimer timer(device_, sample);
    return timer.cost().bytes / timer.typical_seconds(kSecondsPerOp);
  }

  static ir::TensorType f32(ir::Shape shape) { return {ir::DType::kF32, shape}; }

  cpu::CpuDevice device_;
  planner::MachineProfile profile_;
};

struct Arguments {
  std::vector<std::string> from;
  std::string output;
  bool json = false;
};

/// The profile in use, with what those runs took.
Result<planner::MachineProfile> corrected(const std::vector<std::string>& folders) {
  const std::string path = train::calibrated_path();
  if (path.empty() || access(path.c_str(), F_OK) != 0)
    return Error{ErrorCode::kInvalidArgument, "there is no profile to correct", "--from",
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

Status calibrate(const Arguments& arguments) {
  std::string path = arguments.output.empty() ? train::calibrated_path() : arguments.output;
  if (path.empty())
    return Error{ErrorCode::kIo, "there is no cache folder to keep the profile in", "",
                 "set XDG_CACHE_HOME or HOME, or give --output FILE"};
  const double start = now_seconds();
  planner::MachineProfile profile;
  if (arguments.from.empty()) {
    Progress progress;
    profile = Calibration().run(progress);
  } else {
    PLIMSOLL_ASSIGN(profile, corrected(arguments.from));
  }
  if (arguments.output.empty()) {
    std::error_code error;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
    if (error) return Error{ErrorCode::kIo, error.message(), path, "give --output FILE"};
  }
  const std::string text = planner::profile_json(profile);
  PLIMSOLL_TRY(write_file_atomically(path, text));
  if (arguments.json) {
    PLIMSOLL_ASSIGN(Tree tree, parse_json(text));
    fmt::print("{}\n", to_json(Tree::map({{"event", Tree::of(std::string("calibrate"))},
                                          {"path", Tree::of(path)},
                                          {"seconds", Tree::of(now_seconds() - start)},
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
  const auto giga = [](double rate) { return rate * 1e-9; };
  print_text(fmt::format(
      "{}, {} threads, {}: measured in {:.0f} s\n"
      "  products      {:.0f} GFLOP/s in fp32, {:.0f} in bf16, {:.0f} in fp16\n"
      "  attention     {:.0f} GFLOP/s in fp32, {:.0f} in bf16, {:.0f} in fp16\n"
      "  memory        {:.1f} GB/s, in the cache {:.1f}, updates {:.1f}\n"
      "  an op         {:.2g} us\n"
      "Kept in {}\n",
      profile.name, profile.threads, profile.instruction_set, now_seconds() - start,
      giga(profile.product_flops[0]), giga(profile.product_flops[2]), giga(profile.product_flops[3]),
      giga(profile.attention_flops[0]), giga(profile.attention_flops[2]), giga(profile.attention_flops[3]),
      giga(profile.memory_bandwidth), giga(profile.cache_bandwidth), giga(profile.optimizer_bandwidth),
      1e6 * profile.launch_seconds, path));
  return Ok{};
}

}  // namespace

Command add_calibrate(Parser app) {
  return add_command<Arguments>(
      app, "calibrate", "measure this machine, so that plans know how long a step takes",
      [](Parser command, Arguments& a) {
        command
            .add_option("--from", a.from,
                        "measure nothing: correct the profile by what the run or profile in this folder took")
            .type_name("DIR");
        command
            .add_option("--output", a.output,
                        "write the profile here and nowhere else; runtime.profile=FILE uses it")
            .type_name("FILE");
        command.add_flag("--json", a.json, "one JSON object on stdout and nothing else");
        command.footer(
            "Takes half a minute, on a quiet machine. Without --output the profile is kept in\n"
            "$XDG_CACHE_HOME/plimsoll (or ~/.cache/plimsoll) and used by plan, train and eval from then on.\n"
            "--from may be given several times; runs count that were estimated by the profile in use.\n"
            "exit codes: 0, 2 for a run of another machine or profile, 65 damaged, 74 I/O");
      },
      calibrate);
}

}  // namespace plimsoll::cli
