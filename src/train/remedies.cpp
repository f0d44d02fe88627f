#include "train/remedies.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "optimizers/optimizer_list.h"
#include "settings/optimizer_in_backward.h"
#include "settings/settings.h"
#include "settings/state_settings.h"

namespace plimsoll::train {
namespace {

using SettingTexts = std::vector<std::pair<std::string, std::string>>;

struct Candidate {
  SettingTexts settings;
  std::string_view note;
};

constexpr std::string_view kSameBits = "the same bits";
constexpr std::string_view kNarrow = "other numbers: 16 bits in place of 32";
constexpr std::string_view kShorter = "documents are cut at a shorter length";
constexpr int64_t kLeastLength = 64;
constexpr size_t kMostRemedies = 4;

/// In order of cost.
std::vector<Candidate> candidates(const RunConfig& config, const PrepareOptions& options) {
  std::vector<Candidate> list;
  const TrainingSettings& t = config.training;
  const bool trains = options.purpose == Purpose::kTrain;
  const auto fixed = fixed_batch_split(t);
  if (fixed && fixed->micro_batch_size > 1)
    list.push_back({{{"training.gradient_accumulation_steps", "auto"}, {"training.micro_batch_size", "auto"}},
                    kSameBits});
  if (config.memory.recompute.mode != RecomputeMode::kAuto)
    list.push_back({{{"memory.recompute", "auto"}}, kSameBits});
  if (trains && config.memory.optimizer_in_backward == OptimizerInBackward::kFalse)
    list.push_back({{{"memory.optimizer_in_backward", "auto"}}, kSameBits});
  if (trains && config.clip_norm() && !config.memory.second_backward)
    list.push_back({{{"memory.optimizer_in_backward", "true"}, {"memory.second_backward", "true"}},
                    "the same bits; backward runs twice"});
  if (trains && config.evaluates_while_training())
    list.push_back({{{"training.eval_strategy", "no"}}, "the same bits; plimsoll eval evaluates"});
  if (t.precision == Precision::kFp32 || t.precision == Precision::kTf32)
    list.push_back({{{"training.precision", "bf16"}}, kNarrow});
  const optimizers::OptimizerDef* optimizer = optimizers::find_optimizer(t.optimizer);
  if (trains && t.state.moments == StateWord::kFp32 && optimizer != nullptr && optimizer->has_betas())
    list.push_back({{{"training.state.moments", "bf16"}}, kNarrow});
  if (trains && t.state.weights == StateWord::kFp32)
    list.push_back({{{"training.precision", "bf16"},
                     {"training.state.weights", "bf16"},
                     {"training.state.master_weights", "false"},
                     {"training.state.gradients", "bf16"},
                     {"training.state.moments", "bf16"}},
                    "other numbers: 8 bytes a parameter, rounded stochastically"});
  for (int64_t length = config.data.sequence_length / 2; length >= kLeastLength; length /= 2)
    list.push_back({{{"data.sequence_length", std::to_string(length)}}, kShorter});
  return list;
}

/// A value as the command line has it.
Tree value_of(const std::string& text) {
  if (text == "true" || text == "false") return Tree::of(text == "true");
  if (!text.empty() && text.find_first_not_of("0123456789") == std::string::npos)
    return Tree::of(static_cast<int64_t>(std::stoll(text)));
  return Tree::of(text);
}

class Search {
 public:
  Search(const RunConfig& config, const runtime::Target& target, const PrepareOptions& options)
      : config_(config), target_(target), options_(options) {
    options_.dump_ir.clear();
    options_.finds_least = false;
  }

  std::vector<planner::Remedy> operator()() {
    std::vector<planner::Remedy> found;
    const std::vector<Candidate> list = candidates(config_, options_);
    for (const Candidate& c : list) {
      const bool is_length = c.note == kShorter;
      if (found.size() == kMostRemedies || (is_length && has_length_)) continue;
      if (auto remedy = plan(c.settings, c.note)) {
        has_length_ = has_length_ || is_length;
        found.push_back(std::move(*remedy));
      }
    }
    return found.empty() ? together(list) : found;
  }

 private:
  /// Each on top of those before it, until it fits.
  std::vector<planner::Remedy> together(const std::vector<Candidate>& list) {
    SettingTexts all;
    for (const Candidate& c : list) {
      for (const auto& [path, value] : c.settings) {
        std::erase_if(all, [&, &name = path](const auto& setting) { return setting.first == name; });
        all.emplace_back(path, value);
      }
      if (auto remedy = plan(all, "all of it together; nothing of it does alone"))
        return {std::move(*remedy)};
    }
    return {};
  }

  std::optional<planner::Remedy> plan(const SettingTexts& settings, std::string_view note) {
    RunConfig changed = config_;
    for (const auto& [path, value] : settings)
      if (!assign_setting(*find_setting(path), value_of(value), changed)) return {};
    std::vector<std::string> notes;
    if (!check_state(changed.training, notes) || !check_optimizer_in_backward(changed)) return {};
    const auto prepared = prepare(changed, target_, options_);
    if (!prepared || !prepared->report.fits) return {};
    return planner::Remedy{settings, prepared->report.process_peak_bytes(),
                           prepared->report.seconds_estimated, std::string(note)};
  }

  const RunConfig& config_;
  const runtime::Target& target_;
  PrepareOptions options_;
  bool has_length_ = false;
};

}  // namespace

void add_remedies(const RunConfig& config, const runtime::Target& target, const PrepareOptions& options,
                  Prepared& prepared) {
  if (!prepared.report.fits) prepared.report.remedies = Search(config, target, options)();
}

}  // namespace plimsoll::train
