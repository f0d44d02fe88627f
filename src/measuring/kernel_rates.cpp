#include "measuring/kernel_rates.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "backends/cpu/cpu_device.h"
#include "backends/cpu/kernels/isa.h"
#include "base/median.h"
#include "base/process.h"
#include "measuring/rounds.h"
#include "ops/op_list.h"
#include "planner/cost/known_profiles.h"
#include "planner/cost/op_work.h"

namespace plimsoll::measuring {
namespace {

using planner::MachineProfile;
using planner::ProductType;

ir::TensorType f32_of(ir::Shape shape) { return {ir::DType::kF32, shape}; }

OpSample sum_of(int64_t size) { return {"add", {f32_of({size}), f32_of({size})}, {}}; }

OpSample update_of(int64_t size) {
  return {"adamw",
          {f32_of({size}), f32_of({size}), f32_of({size}), f32_of({size}), f32_of({1}), f32_of({2, 8})},
          {{"group", int64_t{0}}}};
}

/// A product, attention, a memory-bound op and an update that stand for all of theirs; the first two are
/// bound by what threads compute, the others by what all have together.
std::array<OpSample, 4> typical_samples() {
  std::array<OpSample, 4> typical;
  const std::vector<SampleGroup> groups = first_samples();
  const auto first_of = [&](ir::WorkKind kind) {
    return std::ranges::find_if(groups,
                                [&](const SampleGroup& group) {
                                  return ops::find_op(group.samples.front().op)->work.kind == kind;
                                })
        ->samples.front();
  };
  typical[0] = first_of(ir::WorkKind::kProduct);
  typical[1] = first_of(ir::WorkKind::kAttention);
  constexpr int64_t kLarge = int64_t{4} << 20;
  typical[2] = sum_of(kLarge);
  typical[3] = update_of(kLarge / 2);
  return typical;
}
constexpr size_t kTypical = 4;
constexpr bool kScales[kTypical] = {true, true, false, false};

/// Of this machine's CPUs together, before anything is measured.
MachineProfile built_in_rates() {
  MachineProfile profile = planner::generic_cpu(cpu::isa_name(cpu::current_isa()));
  profile.threads = num_available_cpus();
  const auto times = static_cast<double>(profile.threads);
  for (double& rate : profile.product_flops) rate *= times;
  for (double& rate : profile.attention_flops) rate *= times;
  profile.vector_flops *= times;
  const long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
  profile.cache_bytes = static_cast<double>(l2 > 0 ? l2 : 1 << 20) * times;
  return profile;
}

/// Whether the device computes it, within so many bytes.
bool is_measurable(const OpSample& sample, const runtime::Target& target, int64_t most_bytes) {
  ir::OpTypes types{sample.op, sample.inputs, {}, sample.attrs};
  auto results = ops::find_op(sample.op)->infer(types);
  if (!results) return false;
  types.outputs = std::move(*results);
  int64_t bytes = 0;
  for (const auto* list : {&types.inputs, &types.outputs})
    for (const ir::TensorType& type : *list) bytes += type.bytes().count;
  return bytes <= most_bytes && target.accepts(types).ok();
}

/// The rates of one device: all that is measured as one list, gone through round after round.
class KernelRates {
 public:
  KernelRates(const KernelPlan& plan, const Shown& shown, runtime::Device& device, MachineProfile start)
      : plan_(plan), shown_(shown), device_(device), memory_(device_), profile_(std::move(start)) {
    list();
  }
  /// The first error of the device.
  [[nodiscard]] const Status& status() const { return status_; }

  MachineProfile run() {
    const auto parts = static_cast<double>(items_.size() * static_cast<size_t>(plan_.rounds));
    const OfRounds rounds = measure_in_rounds(
        {.items = items_.size(),
         .rounds = plan_.rounds,
         .seconds_for_rounds = plan_.seconds_for_rounds,
         .most_seconds = plan_.most_seconds},
        [&](size_t i, int round) {
          shown_(static_cast<double>(static_cast<size_t>(round) * items_.size() + i) / parts, items_[i].what);
          return measure(items_[i]);
        });
    memory_rates(rounds);
    points(rounds);
    fewer_threads(rounds);
    summarise();
    profile_.spread = spread_of(rounds);
    return profile_;
  }

 private:
  struct Item {
    std::string what;
    OpSample sample;
    int64_t threads = 0;  ///< 0: all, on the device at hand
    int64_t spread_bytes = 0;
    planner::OpWork work = {};  ///< as it was measured
    ir::Cost cost = {};
  };
  /// Where each kind of items begins.
  enum Place : uint8_t { kCache, kMemory, kOptimizer, kVector, kLaunch, kFirstSample };

  void list() {
    const auto add = [&](const char* what, OpSample sample) { items_.push_back({what, std::move(sample)}); };
    add("memory", sum_of(static_cast<int64_t>(profile_.cache_bytes / 24)));
    add("memory", sum_of(plan_.memory_elements));
    add("memory", update_of(plan_.memory_elements / 2));
    add("memory", {"swiglu", {f32_of({1, 64, 3072})}, {}});
    add("launches", sum_of(16));
    for (const SampleGroup& group : plan_.groups)
      for (const OpSample& sample : group.samples)
        if (is_measurable(sample, device_.target(), plan_.most_bytes))
          items_.push_back({group.what, sample, 0, plan_.spread_bytes});
    first_of_threads_ = items_.size();
    if (!plan_.fewer_threads || profile_.threads < 2) return;
    for (const int64_t count : counts())
      for (const OpSample& sample : typical_samples()) items_.push_back({"threads", sample, count});
  }
  /// All, and 1, 2, 4, … below.
  [[nodiscard]] std::vector<int64_t> counts() const {
    std::vector<int64_t> list = {profile_.threads};
    for (int64_t count = 1; count < profile_.threads; count *= 2) list.push_back(count);
    return list;
  }

  std::vector<double> measure(Item& item) {
    constexpr double kSecondsOfThreads = 0.05;
    if (item.threads > 0 && item.threads < profile_.threads) {
      cpu::CpuDevice device(static_cast<int>(item.threads));
      OperandMemory memory(device);
      return OpTimer(device, item.sample, 0, &memory).runs_alone(kSecondsOfThreads);
    }
    if (!status_) return {};
    OpTimer timer(device_, item.sample, item.spread_bytes, &memory_);
    item.work = planner::op_work(timer.def(), timer.types(), timer.cost());
    item.cost = timer.cost();
    std::vector<double> seconds =
        timer.runs_alone(item.threads > 0 ? kSecondsOfThreads : plan_.seconds_per_op);
    if (!timer.status()) status_ = timer.status();
    return seconds;
  }

  /// Of memory-bound ops that have no points. What time was too short for keeps the built-in rates.
  void memory_rates(const OfRounds& rounds) {
    const auto set = [&](Place place, double work, double& rate) {
      if (!rounds[place].empty()) rate = work / median(rounds[place]);
    };
    set(kCache, items_[kCache].cost.bytes, profile_.cache_bandwidth);
    set(kMemory, items_[kMemory].cost.bytes, profile_.memory_bandwidth);
    profile_.memory_bandwidth = std::min(profile_.cache_bandwidth, profile_.memory_bandwidth);
    set(kOptimizer, items_[kOptimizer].cost.bytes, profile_.optimizer_bandwidth);
    set(kVector, items_[kVector].cost.flops, profile_.vector_flops);
    if (!rounds[kLaunch].empty()) profile_.launch_seconds = median(rounds[kLaunch]);
    profile_.copy_in_bandwidth = profile_.copy_out_bandwidth = profile_.memory_bandwidth / 2;
  }

  void points(const OfRounds& rounds) {
    for (size_t i = kFirstSample; i < first_of_threads_; ++i) {
      if (rounds[i].empty()) continue;
      const planner::OpWork& of = items_[i].work;
      planner::OpPoint point{.kind = std::string(of.kind), .type = of.type};
      std::ranges::transform(of.extents, point.extents.begin(), [](double e) { return std::llround(e); });
      // A plan adds what a launch costs to each op.
      const double seconds = median(rounds[i]);
      point.rate = of.work / std::max(seconds - profile_.launch_seconds, seconds / 2);
      profile_.points.push_back(std::move(point));
    }
  }

  void fewer_threads(const OfRounds& rounds) {
    if (first_of_threads_ == items_.size()) return;
    const std::vector<int64_t> numbers = counts();
    for (size_t c = 1; c < numbers.size(); ++c) {
      double shares[kTypical];
      for (size_t k = 0; k < kTypical; ++k) {
        const size_t all = first_of_threads_ + k, fewer = all + c * kTypical;
        shares[k] = believable_share(
            share_of_rounds(rounds[all], rounds[fewer]), numbers[c], profile_.threads, kScales[k],
            [&] { return median(measure(items_[all])) / median(measure(items_[fewer])); });
      }
      profile_.fewer_threads.push_back({numbers[c], shares[0], shares[1], shares[2], shares[3]});
    }
  }

  /// Rates for what no point is near: the best of products, the mean of attention.
  void summarise() {
    for (size_t type = 0; type < planner::kNumProductTypes; ++type) {
      double best = 0, logs = 0, count = 0;
      for (const planner::OpPoint& p : profile_.points) {
        if (static_cast<size_t>(p.type) != type) continue;
        const ir::WorkKind kind = planner::work_of_key(p.kind).kind;
        if (kind == ir::WorkKind::kProduct) best = std::max(best, p.rate);
        if (kind == ir::WorkKind::kAttention) logs += std::log(p.rate), ++count;
      }
      const bool is_tf32 = type == static_cast<size_t>(ProductType::kTf32);
      if (best > 0) profile_.product_flops[type] = best;
      if (count > 0) profile_.attention_flops[type] = std::exp(logs / count);
      if (best == 0 && is_tf32) profile_.product_flops[type] = profile_.product_flops[0];
      if (count == 0 && is_tf32) profile_.attention_flops[type] = profile_.attention_flops[0];
    }
  }

  const KernelPlan& plan_;
  const Shown& shown_;
  runtime::Device& device_;
  OperandMemory memory_;
  Status status_ = Ok{};
  std::vector<Item> items_;
  size_t first_of_threads_ = 0;
  MachineProfile profile_;
};

}  // namespace

MachineProfile measure_kernels(const KernelPlan& plan, const Shown& shown) {
  cpu::CpuDevice device(num_available_cpus());
  KernelRates rates(plan, shown, device, built_in_rates());
  MachineProfile profile = rates.run();
  PLIMSOLL_CHECK(rates.status().ok(), rates.status() ? "" : rates.status().error().message());
  return profile;
}

namespace {

/// Of one op in a captured program of many small ones, by the host's clock.
Result<double> captured_op_seconds(runtime::Device& device) {
  constexpr int kMany = 2000, kTimes = 5;
  OpTimer timer(device, sum_of(16));
  const auto program_seconds = [&](int ops) -> Result<double> {
    PLIMSOLL_TRY(device.begin_capture());
    for (int i = 0; i < ops; ++i) timer.launch();
    auto graph = device.end_capture();
    PLIMSOLL_TRY(Status(timer.status()));
    if (!graph) return std::move(graph).error();
    std::vector<double> seconds;
    for (int i = 0; i < kTimes; ++i) {
      const double start = now_seconds();
      PLIMSOLL_TRY(device.replay(**graph));
      PLIMSOLL_TRY(device.synchronize(ir::Queue::kCompute));
      seconds.push_back(now_seconds() - start);
    }
    return median(seconds);
  };
  PLIMSOLL_ASSIGN(const double one, program_seconds(1));
  PLIMSOLL_ASSIGN(const double many, program_seconds(kMany));
  return std::max(0.0, many - one) / (kMany - 1);
}

}  // namespace

Result<MachineProfile> measure_card_kernels(const KernelPlan& plan, runtime::Device& device,
                                            MachineProfile profile, const Shown& shown) {
  KernelRates rates(plan, shown, device, std::move(profile));
  MachineProfile measured = rates.run();
  PLIMSOLL_TRY(Status(rates.status()));
  PLIMSOLL_ASSIGN(measured.launch_seconds, captured_op_seconds(device));
  return measured;
}

}  // namespace plimsoll::measuring
