#include "analysis/remedies.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "analysis/techniques.h"
#include "planner/report/budget.h"
#include "planner/report/headline.h"
#include "settings/named_profile.h"
#include "settings/settings.h"

namespace plimsoll::analysis {
namespace {

struct Candidate {
  strategy::SettingTexts settings;
  std::string_view note;
};

constexpr std::string_view kSameBits = "bit-identical results";
constexpr std::string_view kNarrow = "changes the results: 16 bits instead of 32";
constexpr std::string_view kFrozenNorms =
    "changes the results: BatchNorm keeps the model's statistics, the batch may be split";
constexpr std::string_view kShared =
    "each rank holds a part of the training state; bit-identical results if a step is one micro-batch";
constexpr std::string_view kAdapters = "trains adapters, the model is frozen";
constexpr std::string_view kShorter = "shorter sequences";
constexpr int64_t kLeastLength = 64;
constexpr size_t kMostRemedies = 6;
/// What changes a peak by less does nothing for it.
constexpr double kNoticedShare = 1e-3;

/// What leaves every bit.
void add_same_bits(const settings::RunConfig& config, bool trains, bool couples,
                   std::vector<Candidate>& list) {
  const auto fixed = settings::fixed_batch_split(config.training);
  if (fixed && fixed->micro_batch_size > 1 && !couples)
    list.push_back({{{"training.gradient_accumulation_steps", "auto"}, {"training.micro_batch_size", "auto"}},
                    kSameBits});
  if (!trains) return;
  if (config.memory.recompute.mode != settings::RecomputeMode::kAuto)
    list.push_back({{{"memory.recompute", "auto"}}, kSameBits});
  if (config.memory.optimizer_in_backward == settings::OptimizerInBackward::kFalse)
    list.push_back({{{"memory.optimizer_in_backward", "auto"}}, kSameBits});
  if (config.clip_norm() && !config.memory.second_backward)
    list.push_back({{{"memory.optimizer_in_backward", "true"}, {"memory.second_backward", "true"}},
                    "bit-identical results; backward runs twice"});
  if (settings::is_for_card(config) && config.memory.offload.text == "none")
    list.push_back({{{"memory.offload", "auto"}}, "offloads to host memory what the card does not hold"});
  if (config.evaluates_while_training())
    list.push_back(
        {{{"training.eval_strategy", "no"}}, "bit-identical results; use plimsoll eval to evaluate"});
}

/// Of a run that says what its ranks share; auto has looked for the rest.
void add_shared(const settings::DistributedSettings& distributed, std::vector<Candidate>& list) {
  const settings::RankMode mode = distributed.mode;
  if (distributed.num_ranks() == 1) return;
  if (mode == settings::RankMode::kDdp) list.push_back({{{"distributed.mode", "zero1"}}, kShared});
  if (mode != settings::RankMode::kZero3) list.push_back({{{"distributed.mode", "zero3"}}, kShared});
}

/// Narrower numbers. What turns out to change nothing, such as moments where there are none, is not offered.
void add_narrower(const settings::TrainingSettings& t, const settings::BatchSplit& split, bool trains,
                  std::vector<Candidate>& list) {
  if (t.precision == settings::Precision::kFp32 || t.precision == settings::Precision::kTf32)
    list.push_back({{{"training.precision", "bf16"}}, kNarrow});
  if (!trains) {
    if (t.state.weights == settings::StateWord::kFp32)
      list.push_back({{{"training.precision", "bf16"}, {"training.state.weights", "bf16"}}, kNarrow});
    return;
  }
  const bool has_fp8 =
      t.state.moments == settings::MomentsWord::kFp8Lm || t.state.moments == settings::MomentsWord::kCoat;
  const bool has_codes = t.optimizer == "adamw_8bit" || has_fp8;  // moments of 8 bits
  if (t.state.moments == settings::MomentsWord::kFp32 && !has_codes)
    list.push_back({{{"training.state.moments", "bf16"}}, kNarrow});
  if (t.state.accumulators == settings::StateWord::kFp32)
    list.push_back({narrow_accumulators(t, split), kNarrow});
  if (t.optimizer == "adamw" && !has_fp8)
    list.push_back({{{"training.optimizer", "adamw_8bit"}}, "changes the results: 8-bit moments"});
  if (t.state.weights == settings::StateWord::kFp32) {
    strategy::SettingTexts all = {{"training.precision", "bf16"},
                                  {"training.state.weights", "bf16"},
                                  {"training.state.master_weights", "false"},
                                  {"training.state.gradients", "bf16"}};
    if (!has_codes) all.emplace_back("training.state.moments", "bf16");
    list.push_back(
        {std::move(all), has_codes ? "changes the results: 16-bit weights and gradients, stochastic rounding"
                                   : "changes the results: 8 bytes per parameter, stochastic rounding"});
  }
  if (t.optimizer != "adafactor" && t.optimizer != "sgd")
    list.push_back({{{"training.optimizer", "adafactor"}},
                    "another optimizer: no first moment, factored second moment"});
}

bool is_available(std::string_view path) {
  const settings::Setting* setting = settings::find_setting(path);
  return setting != nullptr && setting->field != nullptr;
}

/// Adapters in place of the model: beside weights as they are, of 16 bits and of 4.
void add_adapters(const settings::RunConfig& config, std::vector<Candidate>& list) {
  strategy::SettingTexts lora;
  if (!config.lora.enabled) {
    lora = {{"lora.r", "8"}, {"lora.target_modules", "all-linear"}};
    list.push_back({lora, kAdapters});
    if (config.training.state.weights == settings::StateWord::kFp32) {
      strategy::SettingTexts narrow = lora;
      narrow.emplace_back("training.precision", "bf16");
      narrow.emplace_back("training.state.weights", "bf16");
      list.push_back({std::move(narrow), "trains adapters; the frozen weights have 16 bits"});
    }
  }
  if (config.quantization.enabled || !is_available("quantization.load_in_4bit")) return;
  lora.emplace_back("quantization.load_in_4bit", "true");
  list.push_back({std::move(lora), "trains adapters; the frozen weights have 4 bits"});
}

/// In the order to try them. `prepared`: the run as it is planned.
std::vector<Candidate> candidates(const settings::RunConfig& config, strategy::Purpose purpose,
                                  const strategy::Prepared& prepared) {
  const bool trains = purpose == strategy::Purpose::kTrain;
  std::vector<Candidate> list;
  add_same_bits(config, trains, prepared.model->couples_micro_batch(), list);
  if (trains) add_shared(config.distributed, list);
  add_narrower(config.training, prepared.split, trains, list);
  if (trains && prepared.report.batch_norms > 0)
    list.push_back({{{"model.norm_statistics", "frozen"}}, kFrozenNorms});
  if (trains) add_adapters(config, list);
  if (!prepared.task->unit().by_length) return list;
  for (int64_t length = config.data.sequence_length / 2; length >= kLeastLength; length /= 2)
    list.push_back({{{"data.sequence_length", std::to_string(length)}}, kShorter});
  return list;
}

/// `over` on top of `settings`.
strategy::SettingTexts with(strategy::SettingTexts settings, const strategy::SettingTexts& over) {
  for (const auto& [path, value] : over) {
    std::erase_if(settings, [&, &name = path](const auto& setting) { return setting.first == name; });
    settings.emplace_back(path, value);
  }
  return settings;
}

class Search {
 public:
  /// `base`: what all remedies say beside their own; `bounded`: what the plan has too much of.
  Search(const strategy::Variants& variants, strategy::SettingTexts base, planner::Bounded bounded,
         strategy::Purpose purpose, const strategy::Prepared& prepared)
      : variants_(variants),
        base_(std::move(base)),
        bounded_(bounded),
        list_(candidates(variants.config(), purpose, prepared)) {}

  /// The remedies; without any, what was tried.
  void operator()(planner::PlanReport& report) {
    report.remedies = each();
    if (report.remedies.empty()) report.remedies = together(report);
    if (!report.remedies.empty()) return;
    planner::Remedy tried;
    for (const Candidate* c : planned_) {
      tried.settings = c->settings;
      report.tried.push_back(tried.text());
    }
  }

 private:
  using Report = std::optional<planner::PlanReport>;

  std::vector<planner::Remedy> each() {
    std::vector<planner::Remedy> found;
    bool has_length = false;
    if (!base_.empty()) take(plan(base_), base_, kSameBits, found);
    for (const Candidate& c : list_) {
      const bool is_length = c.note == kShorter;
      if (found.size() == kMostRemedies || (is_length && has_length)) continue;
      const strategy::SettingTexts settings = with(base_, c.settings);
      const Report report = plan(settings);
      if (take(report, settings, c.note, found)) has_length = has_length || is_length;
      if (report) planned_.push_back(&c);
    }
    return found;
  }

  /// Nothing where it contradicts the run.
  [[nodiscard]] Report plan(const strategy::SettingTexts& settings) const {
    // Elsewhere than on the device things are looked for where nothing fits without.
    const bool offloads =
        std::ranges::any_of(settings, [](const auto& s) { return s.first == "memory.offload"; });
    auto report = variants_.plan(settings, /*finds_least=*/offloads);
    if (!report) return {};
    return std::move(*report);
  }
  [[nodiscard]] int64_t peak_of(const planner::PlanReport& report) const {
    return planner::bounded_bytes(report, bounded_);
  }

  bool take(const Report& report, const strategy::SettingTexts& settings, std::string_view note,
            std::vector<planner::Remedy>& found) const {
    if (!report || !report->fits) return false;
    // Behind a lower budget that does by itself, what changes nothing more is no other way.
    if (!found.empty() && !base_.empty() && peak_of(*report) == found.front().peak_bytes &&
        report->seconds_estimated == found.front().seconds)
      return false;
    found.push_back({settings, peak_of(*report), report->seconds_estimated, std::string(note)});
    return true;
  }

  [[nodiscard]] strategy::SettingTexts all_of(const std::vector<const Candidate*>& chosen) const {
    strategy::SettingTexts all = base_;
    for (const Candidate* c : chosen) all = with(std::move(all), c->settings);
    return all;
  }

  /// Each on top of those before it that do something, until it fits; then without what is not needed for
  /// that, the dearest first.
  [[nodiscard]] std::vector<planner::Remedy> together(planner::PlanReport& told) const {
    std::vector<const Candidate*> chosen;
    Report least;  // of all that are chosen
    double before = 0;
    bool fits = false;
    for (const Candidate& c : list_) {
      chosen.push_back(&c);
      Report report = plan(all_of(chosen));
      fits = report && report->fits;
      if (fits) break;
      const double peak = report ? static_cast<double>(peak_of(*report)) : before;
      const bool searches = c.note == kSameBits;  // what it does shows where the rest nearly fits
      if (!report || (!searches && std::abs(peak - before) < kNoticedShare * before))
        chosen.pop_back();
      else
        least = std::move(report);
      before = peak;
    }
    if (!fits) {
      if (least) told.tried_excess = planner::excess_text(*least);
      return {};
    }
    for (size_t i = chosen.size() - 1; i-- > 0;) {
      std::vector<const Candidate*> fewer = chosen;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (const Report report = plan(all_of(fewer)); report && report->fits) chosen = std::move(fewer);
    }
    const strategy::SettingTexts all = without_idle(all_of(chosen));
    std::vector<planner::Remedy> found;
    take(plan(all), all, "all of these together; none is enough alone", found);
    return found;
  }

  /// Without each setting that is not needed beside the others, such as bf16 moments where they have 8 bits.
  [[nodiscard]] strategy::SettingTexts without_idle(strategy::SettingTexts settings) const {
    for (size_t i = settings.size(); i-- > base_.size();) {
      strategy::SettingTexts fewer = settings;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (const Report report = plan(fewer); report && report->fits) settings = std::move(fewer);
    }
    return settings;
  }

  const strategy::Variants& variants_;
  strategy::SettingTexts base_;
  planner::Bounded bounded_;
  std::vector<Candidate> list_;
  std::vector<const Candidate*> planned_;  ///< of list_: those that do not contradict the run
};

}  // namespace

void add_remedies(const settings::RunConfig& config, const runtime::Target& target,
                  const strategy::PrepareOptions& options, strategy::Prepared& prepared,
                  strategy::PlanCache cache) {
  const std::vector<const planner::Budget*> over = planner::all_exceeded(prepared.report);
  if (prepared.report.fits || over.empty()) return;
  strategy::PrepareOptions planning = options;
  planning.memory = prepared.memory;
  const strategy::Variants variants(config, target, planning, std::move(cache));
  Search(variants, {}, over.front()->bounded, options.purpose, prepared)(prepared.report);
}

void add_remedies_within(int64_t budget_bytes, const settings::RunConfig& config,
                         const runtime::Target& target, const strategy::PrepareOptions& options,
                         strategy::Prepared& prepared) {
  planner::PlanReport& report = prepared.report;
  report.fits = false;
  report.budget_bytes = budget_bytes;
  report.budgets = {{"memory.budget", planner::Bounded::kProcess, budget_bytes, true}};
  report.why = {};
  const strategy::Variants variants(config, target, options);
  Search(variants, {{"memory.budget", std::to_string(budget_bytes)}}, planner::Bounded::kProcess,
         options.purpose, prepared)(report);
}

}  // namespace plimsoll::analysis
