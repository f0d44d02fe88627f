// What is chosen, against less memory and against what is set by hand, by the model's own estimate: under
// rates of each instruction set, and of machines that there might be.
#include "strategy/plan_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "part_of.h"
#include "settings/settings.h"
#include "strategy/plan_cache.h"
#include "strategy/plan_rates.h"
#include "strategy/prepare.h"
#include "strategy/run_device.h"
#include "strategy/variants.h"

namespace plimsoll::strategy {
namespace {

constexpr const char* kWeighedRun =
    "model: {config: {model_type: llama, vocab_size: 1000, hidden_size: 64, intermediate_size: 192, "
    "num_hidden_layers: 5, num_attention_heads: 4, num_key_value_heads: 2, max_position_embeddings: 256}}\n"
    "data: {sequence_length: 128}\ntraining: {global_batch_size: 8, max_steps: 2}\nruntime: {threads: 1}\n"
    "memory: {budget: 4GiB}\n";
constexpr const char* kLink = "runtime.discrete={memory: 1GiB, copy_bandwidth: 500MB/s}";

/// A run on a device, planned again and again; what one plan finds others take.
class Weighed {
 public:
  Weighed(const std::string& rates, bool offloads)
      : config_(*settings::parse_run_config(kWeighedRun, "run.yaml", overrides(rates, offloads))),
        target_(make_target(config_, 1)),
        variants_(config_, *target_,
                  {.memory = MachineMemory{.limit_bytes = kEndless, .available_bytes = kEndless}}),
        budget_(offloads ? "memory.device_budget" : "memory.budget") {}

  [[nodiscard]] planner::PlanReport plan(SettingTexts settings, int64_t budget) const {
    settings.emplace_back(budget_, std::to_string(budget));
    auto variant = variants_.look(settings, /*finds_least=*/true);
    EXPECT_TRUE(variant) << (variant ? "" : variant.error().message());
    return variant ? std::move(variant->report) : planner::PlanReport();
  }
  [[nodiscard]] int64_t peak(const planner::PlanReport& report) const {
    return budget_ == "memory.budget" ? report.process_peak_bytes() : report.device_peak_bytes();
  }

  /// What people set by hand: its peak and its seconds with memory without end.
  struct ByHand {
    std::string name;
    int64_t peak = 0;
    double seconds = 0;
  };
  [[nodiscard]] std::vector<ByHand> by_hand() const {
    std::vector<std::string> offloaded = {"none"};
    if (budget_ != "memory.budget")
      offloaded = {"none", "{optimizer: host}", "{activations: host}",
                   "{optimizer: host, activations: {host: 2}}",
                   "{optimizer: host, masters: host, activations: host, gradients: host, parameters: host}"};
    std::vector<ByHand> all;
    for (const std::string& offload : offloaded)
      for (const std::string recompute : {"none", "full", "attention", "mlp", "{every: 2}", "segments"})
        for (const char* micro : {"8", "4", "2", "1"}) {
          // Beside what lies elsewhere the planner computes all again or nothing.
          if (offload != "none" && recompute != "none" && recompute != "full") continue;
          const planner::PlanReport report = plan({{"memory.recompute", recompute},
                                                   {"training.micro_batch_size", micro},
                                                   {"memory.offload", offload}},
                                                  kEndless);
          all.push_back({recompute + " " + micro + " " + offload, peak(report), report.seconds_estimated});
        }
    return all;
  }

  static constexpr int64_t kEndless = int64_t{1} << 40;

 private:
  static std::vector<std::string> overrides(const std::string& rates, bool offloads) {
    std::vector<std::string> list = {rates};
    if (offloads) list.insert(list.end(), {"runtime.device=discrete", kLink});
    if (!offloads) list.emplace_back("memory.offload=none");
    return list;
  }

  settings::RunConfig config_;
  std::unique_ptr<runtime::Target> target_;
  Variants variants_;
  std::string budget_;
};

/// From the least budget to that of which more is not used. `tolerance`: by which a larger budget may be
/// slower. What is sketched is monotone, but a plan packs a little worse than its sketch, or a little better.
void expect_never_behind(const planner::MachineProfile& profile, bool offloads, int64_t num_budgets,
                         double tolerance = 1e-3) {
  SCOPED_TRACE(profile.name + " " + profile.instruction_set + " " + profile.rates +
               (offloads ? ", offloads" : ""));
  const RatesFile rates(profile);
  const Weighed run(rates.setting(), offloads);
  const std::vector<Weighed::ByHand> by_hand = run.by_hand();
  const int64_t least = run.peak(run.plan({}, 1)), most = run.peak(run.plan({}, Weighed::kEndless));
  ASSERT_LT(least, most);
  double last = std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i <= num_budgets; ++i) {
    const int64_t budget = least + (most - least) / num_budgets * i;
    const planner::PlanReport chosen = run.plan({}, budget);
    ASSERT_TRUE(chosen.fits) << budget;
    EXPECT_LE(chosen.seconds_estimated, last * (1 + tolerance))
        << budget << " bytes are slower than fewer by " << 100 * (chosen.seconds_estimated / last - 1)
        << " %: " << chosen.micro_batch_size << ", " << chosen.recompute << ", " << chosen.offload;
    last = std::min(last, chosen.seconds_estimated);
    for (const Weighed::ByHand& hand : by_hand)
      if (hand.peak <= budget) {
        EXPECT_LE(chosen.seconds_estimated, 1.02 * hand.seconds)
            << budget << " bytes: " << hand.name << " is quicker than " << chosen.micro_batch_size << ", "
            << chosen.recompute << ", " << chosen.offload;
      }
  }
}

class EachInstructionSet : public testing::TestWithParam<const char*> {};

TEST_P(EachInstructionSet, IsNeverBehindLessMemoryOrWhatIsSetByHand) {
  const auto set =
      static_cast<size_t>(std::ranges::find(kInstructionSets, GetParam()) - kInstructionSets.begin());
  expect_never_behind(planner::generic_cpu(GetParam()), /*offloads=*/false, 7);
  if (in_part(set, 3)) expect_never_behind(planner::generic_cpu(GetParam()), /*offloads=*/true, 7);
}

INSTANTIATE_TEST_SUITE_P(ChoosePlan, EachInstructionSet, testing::ValuesIn(some_instruction_sets()),
                         [](const auto& set) { return std::string(set.param); });

/// A few machines here; PLIMSOLL_MACHINES=200 of them in a campaign, PLIMSOLL_MACHINE=17 one by itself. Of
/// 200 machines, and none of the few, 5 have a budget that is slower than a smaller one by more than 1e-3, at
/// worst by 4.8e-3.
TEST(ChoosePlan, IsNeverBehindOnMachinesThatThereMightBe) {
  constexpr uint64_t kFew = 2;
  const char *number = std::getenv("PLIMSOLL_MACHINES"), *one = std::getenv("PLIMSOLL_MACHINE");
  const uint64_t first = one != nullptr ? std::strtoull(one, nullptr, 10) : 1;
  const uint64_t count = one != nullptr ? 1 : number != nullptr ? std::strtoull(number, nullptr, 10) : kFew;
  for (uint64_t seed = first; seed < first + count; ++seed)
    expect_never_behind(RandomMachine(seed).profile(), seed % 2 == 0, 6, seed <= kFew ? 1e-3 : 5e-3);
}

/// Kernels that reach as much in small parts as in large ones: the larger part only takes more memory.
TEST(ChoosePlan, ALargerPartIsTakenForWhatItGains) {
  planner::MachineProfile profile = planner::generic_cpu("avx2");
  profile.half_extent = 0;
  profile.launch_seconds = 0;
  const RatesFile rates(profile);
  const Weighed run(rates.setting(), false);
  const int64_t whole = run.peak(run.plan({{"training.micro_batch_size", "8"}}, Weighed::kEndless));
  const planner::PlanReport chosen = run.plan({}, whole - 1);
  ASSERT_TRUE(chosen.fits);
  const int64_t micro = chosen.micro_batch_size;
  for (const char* other : {"1", "2", "4"}) {
    const planner::PlanReport by_hand = run.plan({{"training.micro_batch_size", other}}, whole - 1);
    EXPECT_LE(chosen.seconds_estimated, by_hand.seconds_estimated) << micro << " against " << other;
  }
}

}  // namespace
}  // namespace plimsoll::strategy
