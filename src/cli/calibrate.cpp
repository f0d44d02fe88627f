// plimsoll calibrate: measures what this machine's kernels do, for the plans to estimate with.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <vector>

#include "backends/cpu/kernels/isa.h"
#include "base/process.h"
#include "base/terminal.h"
#include "cli/commands.h"
#include "cli/op_timer.h"
#include "cli/progress.h"
#include "io/file.h"
#include "io/json.h"
#include "planner/known_profiles.h"
#include "train/run_profile.h"

namespace plimsoll::cli {
namespace {

using ir::DType;
using ir::Shape;
using planner::ProductType;

constexpr double kSecondsPerOp = 0.12;

/// The rates of one machine, a measurement after the other.
class Calibration {
 public:
  Calibration()
      : device_(num_available_cpus()), profile_(planner::generic_cpu(cpu::isa_name(cpu::current_isa()))) {
    profile_.name = train::machine_name();
    profile_.source = "measured by plimsoll calibrate";
    profile_.rates = "calibrated";
    profile_.threads = num_available_cpus();
  }

  planner::MachineProfile run(Progress& progress) {
    struct Part {
      const char* text;
      void (Calibration::*measure)();
    };
    const Part parts[] = {{"matrix products in fp32", &Calibration::products_f32},
                          {"matrix products in bf16", &Calibration::products_bf16},
                          {"attention", &Calibration::attention},
                          {"memory and caches", &Calibration::memory}};
    double done = 0;
    for (const Part& part : parts) {
      progress.show(done / std::size(parts), part.text);
      (this->*part.measure)();
      ++done;
    }
    progress.finish();
    return profile_;
  }

 private:
  double seconds(const OpSample& sample, ir::Cost* cost = nullptr) {
    OpTimer timer(device_, sample);
    if (cost != nullptr) *cost = timer.cost();
    return timer.seconds(kSecondsPerOp);
  }

  /// Rows by inputs and outputs as models have them, small, wide and deep.
  void products(DType dtype, std::initializer_list<ProductType> types) {
    constexpr std::array<std::array<int64_t, 2>, 6> kWeights = {
        {{64, 64}, {256, 256}, {960, 576}, {576, 1536}, {3072, 576}, {16384, 576}}};
    double best = 0;
    for (const int64_t rows : {128, 512, 2048})
      for (const auto& [out, in] : kWeights) {
        ir::Cost cost;
        const double s = seconds({"linear",
                                  {{dtype, Shape{1, rows, in}}, {dtype, Shape{out, in}}},
                                  attrs(dtype, {{"transposed", false}})},
                                 &cost);
        const double rate = cost.flops / s;
        best = std::max(best, rate);
        for (const ProductType type : types) profile_.points.push_back({type, rows, out, in, rate});
      }
    for (const ProductType type : types) profile_.product_flops[static_cast<size_t>(type)] = best;
  }
  void products_f32() { products(DType::kF32, {ProductType::kF32, ProductType::kTf32, ProductType::kF16}); }
  void products_bf16() { products(DType::kBf16, {ProductType::kBf16}); }

  void attention() {
    for (const DType dtype : {DType::kF32, DType::kBf16}) {
      const ir::Attrs how = attrs(dtype, {{"heads", int64_t{9}},
                                          {"kv_heads", int64_t{3}},
                                          {"head_dim", int64_t{64}},
                                          {"scale", 0.125},
                                          {"causal", true},
                                          {"window", int64_t{0}}});
      const ir::TensorType qkv{dtype, {2, 512, 960}}, x{dtype, {2, 512, 576}};
      ir::Cost forward, backward;
      double s = seconds({"attention_packed", {qkv}, how}, &forward);
      s += seconds({"attention_packed_grad", {qkv, x, {DType::kF32, {2, 9, 512}}, x}, how}, &backward);
      const double rate = (forward.flops + backward.flops) / s;
      if (dtype == DType::kBf16)
        profile_.attention_flops[static_cast<size_t>(ProductType::kBf16)] = rate;
      else
        profile_.attention_flops.fill(rate);
    }
  }

  void memory() {
    constexpr int64_t kLarge = int64_t{8} << 20;
    const long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
    profile_.cache_bytes = static_cast<double>(l2 > 0 ? l2 : 1 << 20) * static_cast<double>(profile_.threads);
    const auto small = static_cast<int64_t>(profile_.cache_bytes / 24);
    profile_.cache_bandwidth = bandwidth({"add", {f32({small}), f32({small})}, {}});
    profile_.memory_bandwidth =
        std::min(profile_.cache_bandwidth, bandwidth({"add", {f32({2 * kLarge}), f32({2 * kLarge})}, {}}));
    profile_.optimizer_bandwidth =
        bandwidth({"adamw",
                   {f32({kLarge}), f32({kLarge}), f32({kLarge}), f32({kLarge}), f32({1}), f32({2, 8})},
                   {{"group", int64_t{0}}}});
    ir::Cost swiglu;
    const double s = seconds({"swiglu", {f32({1, 64, 3072})}, {}}, &swiglu);
    profile_.vector_flops = swiglu.flops / s;
    profile_.launch_seconds = seconds({"add", {f32({16}), f32({16})}, {}});
    profile_.copy_in_bandwidth = profile_.copy_out_bandwidth = profile_.memory_bandwidth / 2;
  }
  double bandwidth(const OpSample& sample) {
    ir::Cost cost;
    const double s = seconds(sample, &cost);
    return cost.bytes / s;
  }

  static ir::TensorType f32(Shape shape) { return {DType::kF32, shape}; }
  static ir::Attrs attrs(DType dtype, ir::Attrs a) {
    if (dtype == DType::kBf16) a.set("precision", std::string("bf16"));
    return a;
  }

  cpu::CpuDevice device_;
  planner::MachineProfile profile_;
};

struct Arguments {
  std::string output;
  bool json = false;
};

Status calibrate(const Arguments& arguments) {
  std::string path = arguments.output.empty() ? train::calibrated_path() : arguments.output;
  if (path.empty())
    return Error{ErrorCode::kIo, "there is no cache folder to keep the profile in", "",
                 "set XDG_CACHE_HOME or HOME, or give --output FILE"};
  const double start = now_seconds();
  Progress progress;
  const planner::MachineProfile profile = Calibration().run(progress);
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
  const auto giga = [](double rate) { return rate * 1e-9; };
  print_text(fmt::format(
      "{}, {} threads, {}: measured in {:.0f} s\n"
      "  products      {:.0f} GFLOP/s in fp32, {:.0f} in bf16\n"
      "  attention     {:.0f} GFLOP/s in fp32, {:.0f} in bf16\n"
      "  memory        {:.1f} GB/s, in the cache {:.1f}, updates {:.1f}\n"
      "  an op         {:.2g} us\n"
      "Kept in {}\n",
      profile.name, profile.threads, profile.instruction_set, now_seconds() - start,
      giga(profile.product_flops[0]), giga(profile.product_flops[2]), giga(profile.attention_flops[0]),
      giga(profile.attention_flops[2]), giga(profile.memory_bandwidth), giga(profile.cache_bandwidth),
      giga(profile.optimizer_bandwidth), 1e6 * profile.launch_seconds, path));
  return Ok{};
}

}  // namespace

Command add_calibrate(Parser app) {
  return add_command<Arguments>(
      app, "calibrate", "measure this machine, so that plans know how long a step takes",
      [](Parser command, Arguments& a) {
        command
            .add_option("--output", a.output,
                        "write the profile here and nowhere else; runtime.profile=FILE uses it")
            .type_name("FILE");
        command.add_flag("--json", a.json, "one JSON object on stdout and nothing else");
        command.footer(
            "Takes a few seconds, on a quiet machine. Without --output the profile is kept in\n"
            "$XDG_CACHE_HOME/plimsoll (or ~/.cache/plimsoll) and used by plan, train and eval from then on.\n"
            "exit codes: 0, 74 I/O");
      },
      calibrate);
}

}  // namespace plimsoll::cli
