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

/// The rates of one machine: all that is measured as one list, gone through round after round.
class KernelRates {
 public:
  KernelRates(const KernelPlan& plan, const Shown& shown)
      : plan_(plan), shown_(shown), device_(num_available_cpus()), memory_(device_) {
    profile_ = planner::generic_cpu(cpu::isa_name(cpu::current_isa()));
    profile_.threads = num_available_cpus();
    const auto times = static_cast<double>(profile_.threads);
    for (double& rate : profile_.product_flops) rate *= times;
    for (double& rate : profile_.attention_flops) rate *= times;
    profile_.vector_flops *= times;
    const long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
    profile_.cache_bytes = static_cast<double>(l2 > 0 ? l2 : 1 << 20) * times;
    list();
  }

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
    OpTimer timer(device_, item.sample, item.spread_bytes, &memory_);
    item.work = planner::op_work(timer.def(), timer.types(), timer.cost());
    item.cost = timer.cost();
    return timer.runs_alone(item.threads > 0 ? kSecondsOfThreads : plan_.seconds_per_op);
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
      if (best > 0) profile_.product_flops[type] = best;
      if (count > 0) profile_.attention_flops[type] = std::exp(logs / count);
    }
    const auto tf32 = static_cast<size_t>(ProductType::kTf32);
    profile_.product_flops[tf32] = profile_.product_flops[0];
    profile_.attention_flops[tf32] = profile_.attention_flops[0];
  }

  const KernelPlan& plan_;
  const Shown& shown_;
  cpu::CpuDevice device_;
  OperandMemory memory_;
  std::vector<Item> items_;
  size_t first_of_threads_ = 0;
  MachineProfile profile_;
};

}  // namespace

MachineProfile measure_kernels(const KernelPlan& plan, const Shown& shown) {
  return KernelRates(plan, shown).run();
}

}  // namespace plimsoll::measuring
