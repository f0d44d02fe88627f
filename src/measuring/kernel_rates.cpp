#include "measuring/kernel_rates.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>

#include "backends/cpu/cpu_device.h"
#include "backends/cpu/kernels/isa.h"
#include "base/median.h"
#include "base/process.h"
#include "planner/known_profiles.h"
#include "planner/op_work.h"

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

/// Runs of a sample in all rounds.
struct SampleRuns {
  planner::OpWork work;
  std::vector<double> seconds;
};

/// The rates of one machine, a measurement after the other.
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
  }

  MachineProfile run() {
    memory_rates();
    for (int round = 0; round < plan_.rounds; ++round) measure_round(round);
    for (const auto& [number, of] : measured_) profile_.points.push_back(point_of(of));
    summarise();
    return profile_;
  }

 private:
  [[nodiscard]] bool is_over(int round) const {
    return now_seconds() - start_ > (round > 0 ? plan_.seconds_for_rounds : plan_.most_seconds);
  }

  void measure_round(int round) {
    const auto parts = static_cast<double>(plan_.rounds) * static_cast<double>(plan_.groups.size());
    double done = round * static_cast<double>(plan_.groups.size());
    size_t number = 0;
    for (const SampleGroup& group : plan_.groups) {
      shown_(done++ / parts, group.what);
      for (const OpSample& sample : group.samples) {
        if (is_over(round)) return;
        measure(number++, sample);
      }
    }
  }
  void measure(size_t number, const OpSample& sample) {
    OpTimer timer(device_, sample, plan_.spread_bytes, &memory_);
    SampleRuns& of = measured_[number];
    of.work = planner::op_work(timer.types(), timer.cost());
    std::ranges::copy(timer.runs_alone(plan_.seconds_per_op), std::back_inserter(of.seconds));
  }

  static planner::OpPoint point_of(const SampleRuns& measured) {
    const planner::OpWork& of = measured.work;
    planner::OpPoint point{.kind = std::string(of.kind), .type = of.type};
    std::ranges::transform(of.extents, point.extents.begin(), [](double e) { return std::llround(e); });
    point.rate = of.work / median(measured.seconds);
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
  void memory_rates() {
    shown_(0, "memory");
    profile_.cache_bandwidth = bandwidth(sum_of(static_cast<int64_t>(profile_.cache_bytes / 24)));
    profile_.memory_bandwidth = std::min(profile_.cache_bandwidth, bandwidth(sum_of(plan_.sweep_elements)));
    profile_.optimizer_bandwidth = bandwidth(update_of(plan_.sweep_elements / 2));
    OpTimer swiglu(device_, {"swiglu", {f32_of({1, 64, 3072})}, {}}, 0, &memory_);
    profile_.vector_flops = swiglu.cost().flops / swiglu.typical_seconds(plan_.seconds_per_op);
    OpTimer small(device_, sum_of(16), 0, &memory_);
    profile_.launch_seconds = small.typical_seconds(plan_.seconds_per_op);
    profile_.copy_in_bandwidth = profile_.copy_out_bandwidth = profile_.memory_bandwidth / 2;
  }
  double bandwidth(const OpSample& sample) {
    OpTimer timer(device_, sample, 0, &memory_);
    return timer.cost().bytes / timer.typical_seconds(plan_.seconds_per_op);
  }

  const KernelPlan& plan_;
  const Shown& shown_;
  double start_ = now_seconds();
  cpu::CpuDevice device_;
  OperandMemory memory_;
  std::map<size_t, SampleRuns> measured_;  ///< by the sample's number
  MachineProfile profile_;
};

/// A product, attention, a sweep and an update that stand for all of theirs.
std::array<OpSample, 4> typical_samples() {
  std::array<OpSample, 4> typical;
  for (const SampleGroup& group : first_samples()) {
    if (group.what == "products") typical[0] = group.samples.front();
    if (group.what == "attention") typical[1] = group.samples.front();
  }
  constexpr int64_t kLarge = int64_t{4} << 20;
  typical[2] = sum_of(kLarge), typical[3] = update_of(kLarge / 2);
  return typical;
}

}  // namespace

MachineProfile measure_kernels(const KernelPlan& plan, const Shown& shown) {
  return KernelRates(plan, shown).run();
}

std::vector<planner::ThreadShares> measure_fewer_threads(int64_t threads, const Shown& shown) {
  constexpr double kSeconds = 0.1, kLeastShare = 1e-3, kMostShare = 1;  // more is what else ran meanwhile
  const auto seconds_with = [](int64_t count) {
    cpu::CpuDevice device(static_cast<int>(count));
    OperandMemory memory(device);
    std::array<double, 4> seconds = {};
    std::ranges::transform(typical_samples(), seconds.begin(), [&](const OpSample& sample) {
      return OpTimer(device, sample, 0, &memory).typical_seconds(kSeconds);
    });
    return seconds;
  };
  std::vector<planner::ThreadShares> fewer;
  if (threads < 2) return fewer;
  const std::array<double, 4> all = seconds_with(threads);
  for (int64_t count = 1; count < threads; count *= 2) {
    shown(static_cast<double>(count) / static_cast<double>(threads), "fewer threads");
    const std::array<double, 4> of = seconds_with(count);
    const auto share = [&](size_t i) { return std::clamp(all[i] / of[i], kLeastShare, kMostShare); };
    fewer.push_back({count, share(0), share(1), share(2), share(3)});
  }
  return fewer;
}

}  // namespace plimsoll::measuring
