// The techniques that this version has, as settings. An optimizer or a setting that comes to its list comes
// to this one.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/techniques.h"
#include "optimizers/optimizer_list.h"
#include "preprocessing/run_data.h"
#include "settings/settings.h"

namespace plimsoll::analysis {
namespace {

using enum TechniqueGroup;

/// Whether this version takes the setting, and that value of it.
bool takes(std::string_view path, const std::string& value) {
  const settings::Setting* setting = settings::find_setting(path);
  if (setting == nullptr || setting->field == nullptr) return false;
  const auto& words = setting->available;
  return words.empty() || std::find(words.begin(), words.end(), value) != words.end();
}

class List {
 public:
  List(const settings::RunConfig& config, const strategy::Prepared& base) : config_(config), base_(base) {}

  std::vector<Technique> operator()() {
    add_splits();
    add_recompute();
    add_optimizer_in_backward();
    add_offload();
    add_ranks();
    add_evaluation();
    add_precisions();
    add_state();
    add_optimizers();
    add_freezing();
    add_lora();
    add_data();
    return std::move(list_);
  }

 private:
  [[nodiscard]] std::string now(std::string_view path) const {
    return settings::setting_text(*settings::find_setting(path), config_);
  }
  void add(TechniqueGroup group, std::string name, strategy::SettingTexts settings, std::string note = {}) {
    list_.push_back({group, std::move(name), std::move(settings), std::move(note)});
  }

  void add_splits() {
    if (base_.model->couples_micro_batch()) return;  // another split trains something else
    const int64_t all = config_.training.global_batch_size, micro = base_.split.micro_batch_size;
    std::set<int64_t> sizes = {1, all};
    int64_t half = micro / 2;
    while (half > 1 && all % half != 0) --half;
    if (half > 1) sizes.insert(half);
    int64_t more = 2 * micro;
    while (more < all && all % more != 0) ++more;
    if (more < all) sizes.insert(more);
    sizes.erase(micro);
    for (const int64_t size : sizes)
      add(kBatch, size == all ? "whole batch at once" : fmt::format("micro-batch {} of {}", size, all),
          {{"training.micro_batch_size", std::to_string(size)},
           {"training.gradient_accumulation_steps", std::to_string(all / size)}},
          size == all ? "nothing to accumulate" : fmt::format("accumulated {} times", all / size));
  }

  void add_recompute() {
    const std::string current = now("memory.recompute");
    for (const std::string value :
         {"none", "auto", "attention", "mlp", "selective", "{every: 2}", "segments", "full"})
      if (value != current)
        add(kRecompute, "recompute " + (value.starts_with('{') ? "every 2" : value),
            {{"memory.recompute", value}}, value == "none" ? "keeps outputs of cheap ops too" : "");
  }

  /// The first row says what stands against it, the second what it comes to without that.
  void add_optimizer_in_backward() {
    constexpr const char* kSetting = "memory.optimizer_in_backward";
    if (!takes(kSetting, "true") || now(kSetting) == "true") return;
    add(kStep, "optimizer in backward", {{kSetting, "true"}});
    if (config_.clip_norm() && !config_.memory.second_backward)
      add(kStep, "optimizer in backward, backward twice",
          {{kSetting, "true"}, {"memory.second_backward", "true"}});
    if (config_.clip_norm())
      add(kOptimizer, "optimizer in backward, no clipping",
          {{kSetting, "true"}, {"training.max_grad_norm", "0"}});
  }

  /// To the nearest place that is not the device's memory.
  void add_offload() {
    if (now("memory.offload") != "auto" && now("memory.offload") != "none") return;
    const bool is_process = base_.report.device_is_process;
    const std::string place = is_process ? "disk" : "host";
    const std::string where = is_process ? " on the disk" : " in the host's memory";
    std::string all;
    for (const char* part : {"optimizer", "masters", "activations", "gradients", "parameters"})
      all += fmt::format("{}{}: {}", all.empty() ? "" : ", ", part, place);
    const std::string note = "the time does not include copies";
    add(kStep, "optimizer states" + where,
        {{"memory.offload", fmt::format("{{optimizer: {0}, masters: {0}}}", place)}}, note);
    add(kStep, "activations" + where, {{"memory.offload", fmt::format("{{activations: {}}}", place)}}, note);
    add(kStep, "everything" + where, {{"memory.offload", "{" + all + "}"}}, note);
  }

  /// What each rank holds; the same bits.
  void add_ranks() {
    constexpr const char* kSetting = "distributed.mode";
    if (config_.distributed.num_ranks() == 1) return;
    const std::string current = now(kSetting) == "auto" ? "ddp" : now(kSetting);
    for (const auto& [mode, name] :
         {std::pair<std::string, std::string>{"ddp", "all state on each rank (ddp)"},
          {"zero1", "optimizer state shared by the ranks (ZeRO-1)"}})
      if (mode != current && takes(kSetting, mode)) add(kStep, name, {{kSetting, mode}});
    // With several micro-batches the split is part of what is trained.
    for (const auto& [mode, name] :
         {std::pair<std::string, std::string>{"zero2", "gradients shared, too (ZeRO-2)"},
          {"zero3", "parameters shared, too (ZeRO-3)"}})
      if (mode != current && takes(kSetting, mode))
        add(kState, name, {{kSetting, mode}}, "a step is one micro-batch");
  }

  void add_evaluation() {
    if (config_.evaluates_while_training())
      add(kStep, "no evaluation while training", {{"training.eval_strategy", "no"}},
          "plimsoll eval evaluates");
    if (config_.clip_norm()) add(kOptimizer, "no gradient clipping", {{"training.max_grad_norm", "0"}});
  }

  /// Products in that precision; what the state keeps in 16 bits follows them.
  [[nodiscard]] strategy::SettingTexts in_precision(const std::string& precision) const {
    strategy::SettingTexts settings = {{"training.precision", precision}};
    const bool is_half_precision = precision == "bf16" || precision == "fp16";
    for (const char* part : {"training.state.weights", "training.state.gradients"})
      if (now(part) != "fp32" && now(part) != precision)
        settings.emplace_back(part, is_half_precision ? precision : "fp32");
    if (now("training.state.weights") != "fp32" && precision != "bf16")
      settings.emplace_back("training.state.master_weights", "auto");
    return settings;
  }

  void add_precisions() {
    for (const std::string precision : {"fp32", "tf32", "bf16", "fp16"})
      if (precision != now("training.precision") && takes("training.precision", precision))
        add(kPrecision, "precision " + precision, in_precision(precision));
    const bool is_half_precision = now("training.precision") == "bf16" || now("training.precision") == "fp16";
    if (is_half_precision && config_.training.residual_in_fp32)
      add(kPrecision, "residual stream in 16 bits", {{"training.residual_in_fp32", "false"}});
  }

  void add_state() {
    const auto add_format = [&](const char* name, strategy::SettingTexts settings, const char* note) {
      const bool is_so = std::all_of(settings.begin(), settings.end(),
                                     [&](const auto& s) { return now(s.first) == s.second; });
      if (!is_so) add(kState, name, std::move(settings), note);
    };
    const bool is_bf16 = now("training.state.moments") == "bf16";
    add_format(is_bf16 ? "moments in fp32" : "moments in bf16",
               {{"training.state.moments", is_bf16 ? "fp32" : "bf16"}},
               is_bf16 ? "" : "rounded stochastically");
    add_format("gradients in bf16", {{"training.precision", "bf16"}, {"training.state.gradients", "bf16"}},
               "accumulators stay as they are");
    if (config_.training.state.accumulators == settings::StateWord::kFp32)
      add_format("accumulators in bf16", narrow_accumulators(config_.training, base_.split),
                 "rounded stochastically");
    add_format("weights in bf16, fp32 masters",
               {{"training.precision", "bf16"},
                {"training.state.weights", "bf16"},
                {"training.state.master_weights", "true"}},
               "updates are exact");
    add_format("all state in bf16",
               {{"training.precision", "bf16"},
                {"training.state.weights", "bf16"},
                {"training.state.master_weights", "false"},
                {"training.state.gradients", "bf16"},
                {"training.state.moments", "bf16"}},
               "rounded stochastically");
    if (now("training.state.weights") != "fp32")
      add_format("weights in fp32",
                 {{"training.state.weights", "fp32"}, {"training.state.master_weights", "auto"}}, "");
  }

  void add_optimizers() {
    optimizers::for_each_optimizer([&](const optimizers::OptimizerDef& def) {
      const std::string name(def.name);
      strategy::SettingTexts settings = {{"training.optimizer", name}};
      if (!def.decays && config_.training.weight_decay != 0)
        settings.emplace_back("training.weight_decay", "0");
      const bool has_momentum = def.reads("momentum");
      if (name != config_.training.optimizer)
        add(kOptimizer, "optimizer " + name, settings, has_momentum ? "without momentum" : "");
      if (!has_momentum || (name == config_.training.optimizer && config_.training.momentum > 0)) return;
      settings.emplace_back("training.momentum", "0.9");
      add(kOptimizer, "optimizer " + name + ", momentum 0.9", settings);
    });
  }

  /// The prefix of a block to what it has in common with `tensor`, up to a dot.
  static void shorten(std::map<int32_t, std::string>& prefixes, int32_t block, std::string_view tensor) {
    const auto [at, is_first] = prefixes.emplace(block, tensor);
    std::string& prefix = at->second;
    const auto end = std::ranges::mismatch(prefix, tensor).in1;
    prefix.erase(end, prefix.end());
    prefix.erase(prefix.rfind('.') + 1);
  }

  /// What is frozen already stays so.
  void freeze(const std::string& name, std::vector<std::string> patterns) {
    std::vector<std::string> all = config_.training.freeze;
    all.insert(all.end(), patterns.begin(), patterns.end());
    add(kFrozen, name, {{"training.freeze", fmt::format("[\"{}\"]", fmt::join(all, "\", \""))}});
  }

  void add_freezing() {
    std::vector<std::string> embeddings, blocks;
    std::map<int32_t, std::string> prefixes;  // of the trained tensors of each block
    int32_t last = -1;
    for (const models::Parameter& p : base_.model->parameters()) {
      last = std::max(last, p.block);
      if (p.trained && p.block == ir::kNoBlock && p.kind == models::ParameterKind::kTable)
        embeddings.push_back(p.views.front().name);
      if (!p.trained || p.block == ir::kNoBlock) continue;
      for (const models::ParameterView& view : p.views) shorten(prefixes, p.block, view.name);
    }
    for (const auto& [block, prefix] : prefixes)
      if (2 * block <= last && !prefix.empty()) blocks.push_back(prefix + "*");
    if (!embeddings.empty())
      freeze(base_.model->tied_head() ? "embeddings and tied head frozen" : "embeddings frozen", embeddings);
    if (last > 0 && !blocks.empty())
      freeze(blocks.size() == 1 ? "first block frozen" : fmt::format("first {} blocks frozen", blocks.size()),
             blocks);
    if (!config_.training.freeze.empty()) add(kFrozen, "everything trained", {{"training.freeze", "[]"}});
  }

  void add_lora() {
    if (config_.lora.enabled) {
      add(kFrozen, "full fine-tuning, no adapters", {{"lora", "null"}});
      return;
    }
    add(kFrozen, "LoRA, r 8, on all linear layers", {{"lora.r", "8"}, {"lora.target_modules", "all-linear"}});
  }

  void add_data() {
    if (!base_.task->unit().by_length) return;
    const int64_t length = config_.data.sequence_length;
    if (length >= 4)
      add(kData, fmt::format("sequences of {} tokens", length / 2),
          {{"data.sequence_length", std::to_string(length / 2)}}, fmt::format("in place of {}", length));
    if (base_.labels) return;
    std::string packing = config_.data.packing;
    if (packing == "auto") packing = preprocessing::packs_documents(config_.data) ? "best_fit" : "stream";
    for (const std::string other : {"best_fit", "pad", "stream"})
      if (other != packing && !config_.data.buckets.given())
        add(kData, "packing " + other, {{"data.packing", other}});
  }

  const settings::RunConfig& config_;
  const strategy::Prepared& base_;
  std::vector<Technique> list_;
};

}  // namespace

strategy::SettingTexts narrow_accumulators(const settings::TrainingSettings& training,
                                           const settings::BatchSplit& split) {
  strategy::SettingTexts settings = {{"training.state.accumulators", "bf16"}};
  if (!settings::fixed_batch_split(training))
    settings.emplace_back("training.micro_batch_size", std::to_string(split.micro_batch_size));
  return settings;
}

std::vector<Technique> known_techniques(const settings::RunConfig& config, const strategy::Prepared& base) {
  return List(config, base)();
}

}  // namespace plimsoll::analysis
