// DeepSpeed's file, alone or beside the TrainingArguments that its "auto" stands for.
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "importing/settle.h"

namespace plimsoll::importing {
namespace {

constexpr Dialect kDeepspeed = Dialect::kDeepspeed;

const SourceKey* key_of(const Draft& draft, std::string_view pattern) {
  return draft.find(kDeepspeed, pattern);
}

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

/// Its Adam is AdamW unless adam_w_mode is false, and all parameters are of one group, which decays.
void settle_rule(Draft& draft, bool is_alone) {
  const SourceKey* type = key_of(draft, "optimizer.type");
  const SourceKey* mode = key_of(draft, "optimizer.params.adam_w_mode");
  const bool decoupled = mode == nullptr || bool_in(mode->value).value_or(true);
  if (type != nullptr) {
    const std::string name = lower(type->value.text);
    const SourceKey* decay = key_of(draft, "optimizer.params.weight_decay");
    const bool decays = decay != nullptr && number_in(decay->value).value_or(1) != 0;
    if (name == "adamw" || (name == "adam" && decoupled))
      draft.map(*type, "training.optimizer", word("adamw"),
                name == "adam" ? "DeepSpeed's Adam is AdamW" : "");
    else if (name == "adam" && !decays)
      draft.map(*type, "training.optimizer", word("adam"));
    else if (name == "adam")
      draft.map_words(*type, "training.optimizer", "!adamw",
                      "the decay passes through the moments there, and is decoupled here");
    else if (name == "sgd")
      draft.map(*type, "training.optimizer", word("sgd"));
    else if (name == "lion" || name == "muon")
      draft.map_words(*type, "training.optimizer", name + ",!adamw");
    else if (name == "onebitadam" || name == "zerooneadam" || name == "onebitlamb" || name == "lamb" ||
             name == "fusedlamb" || name == "adagrad" || name == "muadam" || name == "muadamw" ||
             name == "musgd")
      draft.map_words(*type, "training.optimizer", "!adamw", "it is another rule");
    else
      draft.wrong(*type, "Adam, AdamW, SGD, Lion, Muon, Lamb, Adagrad, OneBitAdam or MuAdam");
    draft.set_default("training.weight_decay_scope", "all", "DeepSpeed's optimizer decays every parameter");
    if (is_alone) draft.set_default("training.weight_decay", "0", "DeepSpeed's default");
    if (is_alone) draft.set_default("training.learning_rate", "1e-3", "DeepSpeed's default");
  } else if (is_alone) {
    draft.fill_in("training.learning_rate", "the optimizer's, which the script makes");
  }
  if (mode != nullptr && type != nullptr) draft.joined(*mode, "training.optimizer", "");
  if (const SourceKey* betas = key_of(draft, "optimizer.params.betas")) {
    const auto& items = betas->value.items;
    if (items.size() != 2 || !number_in(items[0]) || !number_in(items[1]))
      return draft.wrong(*betas, "a list of two numbers");
    draft.map(*betas, "training.adam_beta1", items[0], "the first of betas");
    draft.set("training.adam_beta2", items[1], "the second of " + betas->name);
  }
}

/// The rate that the schedule rises to; it goes before the optimizer's.
void settle_peak(Draft& draft, bool has_default) {
  const SourceKey* peak = key_of(draft, "scheduler.params.warmup_max_lr");
  const SourceKey* rate = key_of(draft, "optimizer.params.lr");
  if (peak != nullptr) {
    draft.map(*peak, "training.learning_rate", peak->value);
    if (rate != nullptr && number_in(rate->value) != number_in(peak->value))
      draft.harmless(*rate, "warmup_max_lr goes before it");
  } else if (has_default) {
    draft.set("training.learning_rate", io::Tree::of(1e-3), "warmup_max_lr's default");
    if (rate != nullptr) draft.harmless(*rate, "warmup_max_lr goes before it, 0.001 by default");
  }
}

void settle_total(Draft& draft) {
  const SourceKey* total = key_of(draft, "scheduler.params.total_num_steps");
  const Line* steps = draft.line("training.max_steps");
  if (total == nullptr) return;
  if (steps == nullptr || io::to_yaml_flow(steps->value) == io::to_yaml_flow(total->value))
    draft.map(*total, "training.max_steps", total->value);
  else
    draft.no_equal(*total, "the schedule ends with the run", "training.max_steps");
}

/// Ours for DeepSpeed's schedule; nothing where it has no like.
std::optional<std::string> schedule_like(const std::string& name) {
  if (name == "WarmupLR") return "constant_with_warmup";
  if (name == "WarmupDecayLR") return "linear";
  if (name == "WarmupCosineLR") return "cosine";
  return {};
}

void settle_shape(Draft& draft, const SourceKey& type) {
  const std::string& name = type.value.text;
  const auto ours = schedule_like(name);
  const SourceKey* shape = key_of(draft, "scheduler.params.warmup_type");
  const bool is_linear = shape != nullptr && shape->value.text == "linear";
  if (!ours && name != "OneCycle" && name != "LRRangeTest")
    return draft.wrong(type, "WarmupLR, WarmupDecayLR, WarmupCosineLR, OneCycle or LRRangeTest");
  if (!ours)
    draft.map_words(type, "training.lr_scheduler", "!constant", "it is not supported");
  else if (is_linear)
    draft.map(type, "training.lr_scheduler", io::Tree::of(*ours), "its rate comes a step later");
  else
    draft.map_words(type, "training.lr_scheduler", "!" + *ours,
                    "it warms up by the logarithm, the rate is another until then");
  if (shape != nullptr && is_linear) draft.joined(*shape, "training.lr_scheduler", "");
  if (shape != nullptr) draft.no_equal(*shape, "the warm-up is linear", "training.lr_scheduler");
}

void settle_schedule(Draft& draft, bool is_alone) {
  const SourceKey* type = key_of(draft, "scheduler.type");
  if (type == nullptr) {
    if (is_alone) draft.set_default("training.lr_scheduler", "constant", "DeepSpeed has none by default");
    return;
  }
  settle_shape(draft, *type);
  if (const SourceKey* warmup = key_of(draft, "scheduler.params.warmup_num_steps"))
    draft.map(*warmup, "training.warmup_steps", warmup->value);
  else if (is_alone && schedule_like(type->value.text))
    draft.set_default("training.warmup_steps", "1000", "DeepSpeed's default");
  settle_peak(draft, is_alone && type->value.text == "WarmupDecayLR");
  settle_total(draft);
}

void settle_loss_scale(Draft& draft) {
  if (const SourceKey* scale = key_of(draft, "fp16.loss_scale")) {
    if (number_in(scale->value) == 0.0)
      draft.harmless(*scale, "0 is a dynamic scale");
    else
      draft.map(*scale, "training.loss_scale.fixed", scale->value);
  }
  if (const SourceKey* power = key_of(draft, "fp16.initial_scale_power")) {
    const auto n = number_in(power->value);
    if (!n || *n < 0 || *n > 64) return draft.wrong(*power, "a power of two from 0 to 64");
    draft.map(*power, "training.loss_scale.init_scale", io::Tree::of(std::exp2(*n)),
              fmt::format("2 to the {}", *n));
  }
  draft.set_default("training.loss_scale.growth_interval", "1000", "DeepSpeed's default");
}

/// Its 16 bits are those of all weights, with masters beside them.
void settle_precision(Draft& draft) {
  for (const char* name : {"bf16.enabled", "bfloat16.enabled", "fp16.enabled"}) {
    const SourceKey* key = key_of(draft, name);
    const auto on = switch_of(draft, key);
    if (!on) continue;
    const bool is_half = std::string_view(name) == "fp16.enabled";
    if (!*on) {
      draft.harmless(*key, "it is off");
      continue;
    }
    const char* const format = is_half ? "fp16" : "bf16";
    draft.map(*key, "training.precision", word(format));
    draft.set("training.state.weights", word(format), "DeepSpeed keeps weights so, with fp32 masters");
    draft.set("training.residual_in_fp32", io::Tree::of(false), "as the weights");
    if (is_half) settle_loss_scale(draft);
  }
  // What describes a precision that is off says nothing.
  const SourceKey* half = key_of(draft, "fp16.enabled");
  const bool is_on = half != nullptr && bool_in(half->value).value_or(true);
  for (const Source& source : draft.sources())
    for (const SourceKey& key : source.keys)
      if (source.dialect == kDeepspeed && key.pattern.starts_with("fp16.") && key.pattern != "fp16.enabled" &&
          !is_on)
        draft.harmless(key, "fp16 is off");
}

/// States and weights beside the device: ZeRO-Offload's cpu is host memory, its nvme the disk.
void settle_offload(Draft& draft) {
  constexpr std::pair<const char*, const char*> kParts[] = {{"offload_optimizer", "optimizer"},
                                                            {"offload_param", "parameters"}};
  std::vector<std::pair<std::string, io::Tree>> places;
  std::vector<const SourceKey*> keys;
  bool has_disk = false;
  for (const auto& [theirs, ours] : kParts) {
    const SourceKey* device = key_of(draft, fmt::format("zero_optimization.{}.device", theirs));
    if (device == nullptr) continue;
    const std::string where = lower(device->value.text);
    if (where != "cpu" && where != "nvme" && where != "none") {
      draft.wrong(*device, "cpu, nvme or none");
    } else if (where == "none") {
      draft.harmless(*device, "it stays on the device");
    } else {
      places.emplace_back(ours, word(where == "cpu" ? "host" : "disk"));
      keys.push_back(device);
      has_disk = has_disk || where == "nvme";
    }
  }
  for (const SourceKey* key : keys) draft.map(*key, "memory.offload", io::Tree::map(places));
  for (const auto& [theirs, unused] : kParts)
    if (const SourceKey* path = key_of(draft, fmt::format("zero_optimization.{}.nvme_path", theirs))) {
      if (has_disk && !draft.has("memory.offload_dir"))
        draft.map(*path, "memory.offload_dir", path->value);
      else
        draft.harmless(*path, has_disk ? "one folder has all of it" : "nothing is offloaded to disk");
    }
}

}  // namespace

void settle_deepspeed(Draft& draft, bool is_alone) {
  settle_offload(draft);
  const SourceKey* global = key_of(draft, "train_batch_size");
  const SourceKey* micro = key_of(draft, "train_micro_batch_size_per_gpu");
  const SourceKey* steps = key_of(draft, "gradient_accumulation_steps");
  if (is_alone)
    settle_batch(draft, {.micro = micro, .accumulation = steps, .global = global, .default_micro = 0});
  settle_precision(draft);
  settle_rule(draft, is_alone);
  settle_schedule(draft, is_alone);
  if (is_alone) draft.set_default("training.max_grad_norm", "1", "DeepSpeed's default");
  if (!is_alone) return;
  if (!draft.has("training.max_steps"))
    draft.fill_in("training.num_epochs", "or training.max_steps: the length of the run");
}

}  // namespace plimsoll::importing
