// Checks constraints between settings, then features that are not available.
#include "settings/run_config_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <set>
#include <string_view>

#include "optimizers/optimizer_list.h"
#include "settings/best_model.h"
#include "settings/distributed.h"
#include "settings/lora_settings.h"
#include "settings/micro_batch.h"
#include "settings/named_profile.h"
#include "settings/offload.h"
#include "settings/optimizer_in_backward.h"
#include "settings/param_groups.h"
#include "settings/quantization.h"
#include "settings/schedule.h"
#include "settings/state_settings.h"
#include "settings/wrong.h"
#include "tasks/task_list.h"

namespace plimsoll::settings {
namespace {

Status check_batch(TrainingSettings& training, const GivenSettings& given, int64_t ranks) {
  const auto& micro = training.micro_batch_size;
  const auto& accum = training.gradient_accumulation_steps;
  const bool from_product = !given.contains("training.global_batch_size") && micro &&
                            (accum || given.contains("per_device_train_batch_size"));
  if (from_product) training.global_batch_size = *micro * accum.value_or(1) * ranks;
  training.chooses_global_batch_size = training.global_batch_size == 0;
  if (training.chooses_global_batch_size) {
    if (micro || accum)
      return wrong_setting("training.global_batch_size is auto, and its split is given",
                           "set training.micro_batch_size and gradient_accumulation_steps to auto");
    training.global_batch_size = 1;
  }
  const int64_t global = training.global_batch_size;
  if (global > 1 << 24)
    return wrong_setting(fmt::format("a global batch of {} sequences is too large", global),
                         "lower the batch");
  if (micro && accum && *micro * *accum * ranks != global)
    return wrong_setting(
        fmt::format("training.micro_batch_size ({}) times training.gradient_accumulation_steps ({}) "
                    "{}is not training.global_batch_size ({})",
                    *micro, *accum, ranks == 1 ? "" : fmt::format("times {} ranks ", ranks), global),
        "set one of them to auto");
  if (ranks > 1) return Ok{};  // a rank's share may end with padding
  if (micro && global % *micro != 0)
    return wrong_setting(
        fmt::format("training.micro_batch_size ({}) does not divide training.global_batch_size ({})", *micro,
                    global),
        "choose a divisor, or auto");
  if (accum && global % *accum != 0)
    return wrong_setting(
        fmt::format(
            "training.gradient_accumulation_steps ({}) does not divide training.global_batch_size ({})",
            *accum, global),
        "choose a divisor, or auto");
  return Ok{};
}

Status check_device(const std::string& device) {
  const bool numbered =
      device.starts_with("cuda:") && device.size() > 5 && device.size() <= 8 &&
      std::all_of(device.begin() + 5, device.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (device == "cpu" || device == "discrete" || device == "cuda" || numbered) return Ok{};
  const auto is_of = [&](std::initializer_list<std::string_view> words) {
    return std::ranges::any_of(words, [&](std::string_view word) { return device.starts_with(word); });
  };
  const char* hint = "set runtime.device=cuda for an NVIDIA card, or runtime.device=cpu";
  if (device.starts_with("cuda:")) hint = "a run has one card: set runtime.device=cuda or cuda:1";
  if (is_of({"mps", "metal", "rocm", "hip", "xpu", "tpu", "vulkan", "amd"}))
    hint = "Plimsoll has backends for CPUs and NVIDIA cards: set runtime.device=cpu";
  return wrong_setting(
      "runtime.device is " + io::Tree::of(device).describe() + ", expected cpu, discrete, cuda or cuda:1",
      hint);
}

/// A budget that is no program's: a size whose unit was left out.
void note_small_budgets(RunConfig& config) {
  constexpr int64_t kLeast = 1 << 20;
  const std::pair<const char*, const MemoryBudget*> budgets[] = {
      {"memory.budget", &config.memory.budget},
      {"memory.device_budget", &config.memory.device_budget},
      {"memory.host_budget", &config.memory.host_budget},
      {"memory.disk_budget", &config.memory.disk_budget}};
  for (const auto& [path, budget] : budgets)
    if (budget->kind == MemoryBudget::Kind::kBytes && budget->bytes < kLeast)
      config.notes.push_back(fmt::format("{} is {} bytes, as no unit is given: did you mean {}GiB?", path,
                                         budget->bytes, budget->bytes));
}

/// transformers' rules for a rate that follows from the step.
Status check_adafactor(const TrainingSettings& t, const GivenSettings& given) {
  const optimizers::AdafactorHyper& adafactor = t.adafactor;
  if (adafactor.eps[0] <= 0)
    return wrong_setting("training.adafactor.eps begins with 0, and a squared gradient may be 0 too",
                         "set training.adafactor.eps=[1e-30, 1e-3]");
  if (adafactor.warmup_init && !adafactor.relative_step)
    return wrong_setting(
        "training.adafactor.warmup_init is true, and training.adafactor.relative_step is not",
        "set training.adafactor.relative_step=true, or leave warmup_init out");
  if (!adafactor.relative_step) return Ok{};
  const char* const with_a_rate = given.contains("training.learning_rate") ? "training.learning_rate"
                                  : t.warmup_steps > 0                     ? "training.warmup_steps"
                                  : t.warmup_ratio.value_or(0) > 0         ? "training.warmup_ratio"
                                                                           : nullptr;
  if (with_a_rate == nullptr) return Ok{};
  return wrong_setting(
      fmt::format("training.adafactor.relative_step takes the rate from the step, and {} is given",
                  with_a_rate),
      fmt::format("leave {} out, or set training.adafactor.relative_step=false", with_a_rate));
}

/// Decay and beta2 where none is given, and torch.optim.SGD's rules for momentum.
Status check_optimizer(RunConfig& config, const GivenSettings& given) {
  TrainingSettings& t = config.training;
  if (t.ema_decay && config.lora.enabled)
    return wrong_setting("training.ema_decay averages the weights of a model, and lora trains adapters alone",
                         "leave one of them out");
  const bool decay_given = given.contains("training.weight_decay");
  const optimizers::OptimizerDef* def = optimizers::find_optimizer(t.optimizer);
  if (def != nullptr && def->has_betas() && !given.contains("training.adam_beta2"))
    t.adam_beta2 = def->default_beta2;
  if (def != nullptr && !def->decays && decay_given && t.weight_decay != 0)
    return wrong_setting(
        fmt::format("training.optimizer {} has no decay, and training.weight_decay is not 0", t.optimizer),
        "use adamw, or set training.weight_decay=0");
  if (def != nullptr && !decay_given) t.weight_decay = def->default_decay;
  if (def != nullptr && def->name == "adafactor") return check_adafactor(t, given);
  if (t.nesterov && (t.momentum == 0 || t.dampening != 0))
    return wrong_setting(
        fmt::format("training.nesterov takes a momentum and no dampening, and training.{} is {}",
                    t.momentum == 0 ? "momentum" : "dampening", t.momentum == 0 ? t.momentum : t.dampening),
        "set training.momentum=0.9 training.dampening=0, or training.nesterov=false");
  return Ok{};
}

Status check_buckets(const DataSettings& data) {
  if (!data.buckets.given()) return Ok{};
  const auto& lengths = data.buckets.lengths;
  if (std::adjacent_find(lengths.begin(), lengths.end(), std::greater_equal<>()) != lengths.end())
    return wrong_setting(
        fmt::format("data.buckets is [{}], and its lengths do not rise", fmt::join(lengths, ", ")),
        "write each length once, the shortest first");
  if (!lengths.empty() && lengths.back() > data.sequence_length)
    return wrong_setting(
        fmt::format("data.buckets has {}, and data.sequence_length is {}", lengths.back(),
                    data.sequence_length),
        fmt::format("set data.sequence_length={}, or leave that length out", lengths.back()));
  return Ok{};
}

/// The operands of a dump are as long as the sequences.
Status check_dump(const RunConfig& config) {
  const bool has_operands = config.dumps("quantized") || config.dumps("operands");
  if (config.debug.dump_dir.empty() || !has_operands || !config.data.buckets.given()) return Ok{};
  return wrong_setting("debug.dump has operands of products, and data.buckets gives them several shapes",
                       "set data.buckets=null");
}

Status check_date(const std::string& text) {
  int year = 0, size = 0;
  unsigned month = 0, day = 0;
  if (text == "auto") return Ok{};
  const bool reads = text.size() == 10 &&
                     std::sscanf(text.c_str(), "%4d-%2u-%2u%n", &year, &month, &day, &size) == 3 &&
                     size == 10;
  if (reads && (std::chrono::year(year) / std::chrono::month(month) / std::chrono::day(day)).ok() &&
      year >= 1)
    return Ok{};
  return wrong_setting("data.template_date is " + io::Tree::of(text).describe() +
                           ", expected a day such as 2026-11-27, or auto",
                       "leave it out, or write year, month and day");
}

Status check_data(const RunConfig& config) {
  const DataSettings& data = config.data;
  PLIMSOLL_TRY(check_date(data.template_date));
  if (!data.weights.empty() && data.weights.size() != data.train.size())
    return wrong_setting(fmt::format("data.weights has {} numbers and data.train {} entries",
                                     data.weights.size(), data.train.size()),
                         "give one weight an entry of data.train");
  if (data.eval_fraction > 0 && !data.eval.empty())
    return wrong_setting("data.eval and data.eval_fraction contradict", "keep one of them");
  return check_buckets(data);
}

Status check_label_names(const std::vector<std::string>& names) {
  std::set<std::string_view> seen;
  for (const std::string& name : names) {
    if (name.empty())
      return wrong_setting("classification.label_names has an empty name", "give each label a name");
    if (!seen.insert(name).second)
      return wrong_setting(fmt::format("classification.label_names has '{}' twice", name),
                           "give labels names that differ");
  }
  return Ok{};
}

Status check_masking(const MaskingSettings& mlm) {
  if (mlm.mask + mlm.random > 1)
    return wrong_setting(fmt::format("mlm.mask and mlm.random are {} together", mlm.mask + mlm.random),
                         "they are shares of the masked tokens: at most 1");
  return Ok{};
}

/// A loss scale does not begin where it ends.
Status check_loss_scale(const LossScaleSettings& scale) {
  if (scale.fixed || scale.init_scale >= scale.min_scale) return Ok{};
  return wrong_setting(fmt::format("training.loss_scale.init_scale ({:g}) is below its min_scale ({:g})",
                                   scale.init_scale, scale.min_scale),
                       "raise init_scale, or lower min_scale");
}

/// eval_strategy or save_strategy with the count that it goes by; given without one it takes `usual`.
struct Strategy {
  const char* path;
  std::string& strategy;
  const char* steps_path;
  int64_t& steps;
  int64_t usual;
};

Status settle_strategy(const Strategy& s, const GivenSettings& given, std::vector<std::string>& notes) {
  const auto strategy = given.find(s.path), steps = given.find(s.steps_path);
  const auto counts_no_steps = [&] { return s.strategy == "no" || s.strategy == "epoch"; };
  if (counts_no_steps() && steps != given.end() && s.steps > 0) {
    if (strategy->second.document < steps->second.document) s.strategy = "auto";
    if (s.strategy == "no" && strategy->second.document == steps->second.document)
      return wrong_setting(fmt::format("{} is no, and {} is {}", s.path, s.steps_path, s.steps),
                           "keep one of them");
    if (s.strategy == "epoch")
      notes.push_back(fmt::format("{} has no effect with {} epoch", s.steps_path, s.path));
  }
  if (counts_no_steps()) s.steps = 0;
  if (s.strategy != "steps" || s.steps > 0) return Ok{};
  s.steps = s.usual;
  notes.push_back(fmt::format("{} is steps without {}: every {} steps, as in transformers", s.path,
                              s.steps_path, s.usual));
  return Ok{};
}

constexpr int64_t kUsual = 500;  // of save_steps and logging_steps in transformers' TrainingArguments

Status settle_eval_strategy(RunConfig& config, const GivenSettings& given) {
  const int64_t logging = given.contains("training.logging_steps") ? config.training.logging_steps : kUsual;
  return settle_strategy({"training.eval_strategy", config.training.eval_strategy, "training.eval_steps",
                          config.training.eval_steps, logging},
                         given, config.notes);
}

Status settle_save_strategy(RunConfig& config, const GivenSettings& given) {
  return settle_strategy({"output.save_strategy", config.output.save_strategy, "output.save_steps",
                          config.output.save_steps, kUsual},
                         given, config.notes);
}

/// Pretrained weights need a folder to lie in.
Status check_weights(const RunConfig& config) {
  if (!starts_pretrained(config.model) || !config.model.path.empty()) return Ok{};
  return wrong_setting("model.init is pretrained, and no model.path says where the weights are",
                       "set model.path to a Hugging Face model directory, or model.init=random");
}

}  // namespace

Status settle_task(RunConfig& config, const GivenSettings& given) {
  std::string& packing = config.data.packing;
  const tasks::TaskDef* task = tasks::find_task(config.task);
  if (task == nullptr || task->preparation == tasks::Preparation::kPack || packing == "pad") return Ok{};
  if (given.contains("data.packing") && packing != "auto")
    return wrong_setting(
        fmt::format("data.packing is {}, and {} takes one example a row", packing, config.task),
        "leave data.packing out");
  if (task->preparation == tasks::Preparation::kLabelled) packing = "pad";
  return Ok{};
}

std::vector<Error> check_run(RunConfig& config, const GivenSettings& given) {
  std::vector<Error> errors;
  const auto add = [&](Status status) {
    if (!status) errors.push_back(std::move(status).error());
  };
  add(settle_eval_strategy(config, given));
  add(settle_save_strategy(config, given));
  add(check_data(config));
  add(check_dump(config));
  add(check_label_names(config.classification.label_names));
  add(check_masking(config.mlm));
  add(check_images(config));
  add(check_batch(config.training, given, config.distributed.num_ranks()));
  add(check_device(config.runtime.device));
  note_small_budgets(config);
  add(check_optimizer(config, given));
  add(check_param_groups(config.training));
  add(check_loss_scale(config.training.loss_scale));
  add(check_state(config.training, config.notes));
  if (std::string note = micro_batch_note(config); !note.empty()) config.notes.push_back(std::move(note));
  add(check_optimizer_in_backward(config));
  add(check_offload(config));
  for (std::string& note : offload_notes(config)) config.notes.push_back(std::move(note));
  for (std::string& note : profile_notes(config)) config.notes.push_back(std::move(note));
  for (std::string& note : rank_notes(config)) config.notes.push_back(std::move(note));
  add(check_lora(config));
  add(check_quantization(config));
  if (config.training.eval_steps > 0 && !config.data.evaluates())
    add(wrong_setting("training.eval_steps is given, but data.eval names no data",
                      "set data.eval, or training.eval_steps=0"));
  if (config.training.eval_strategy == "epoch" && !config.data.evaluates())
    add(wrong_setting("training.eval_strategy is epoch, but data.eval names no data",
                      "set data.eval, or training.eval_strategy=no"));
  add(check_best_model(config));
  for (Error& error : check_distributed(config)) errors.push_back(std::move(error));
  if (config.output.max_shard_size && config.output.max_shard_size->count <= 0)
    add(wrong_setting("output.max_shard_size is 0", "set a size such as 5GB, or null for one file"));
  if (config.output.dir.size() > 4000) add(wrong_setting("output.dir is too long for a path", "shorten it"));
  if (config.output.dir.empty()) add(wrong_setting("output.dir is empty", "name a folder"));
  auto schedule = make_schedule(config.training, config.training.max_steps.value_or(1));
  if (!schedule) errors.push_back(std::move(schedule).error());
  if (config.training.max_steps)
    if (std::string note = warmup_note(config.training, *config.training.max_steps); !note.empty())
      config.notes.push_back(std::move(note));
  return errors;
}

std::vector<Error> missing_for(const RunConfig& config, RunUse use) {
  std::vector<Error> errors;
  if (use == RunUse::kPlan) return errors;
  if (use == RunUse::kTraining && config.data.train.empty())
    errors.push_back(
        wrong_setting("data.train names no data",
                      "set data.train to a .jsonl, .csv, .txt, .npy or .bin file, a list or a glob"));
  if (use == RunUse::kEvaluation && !config.data.evaluates())
    errors.push_back(
        wrong_setting("data.eval names no data",
                      "set data.eval to a .jsonl, .csv, .txt, .npy or .bin file, a list or a glob"));
  if (auto quantized = check_quantized_use(config, use); !quantized)
    errors.push_back(std::move(quantized).error());
  if (auto weights = check_weights(config); !weights) errors.push_back(std::move(weights).error());
  return errors;
}

namespace {

Status first_of(std::vector<Error> errors) {
  if (errors.empty()) return Ok{};
  return std::move(errors.front());
}

}  // namespace

Status check_for_training(const RunConfig& config) {
  return first_of(missing_for(config, RunUse::kTraining));
}

Status check_for_evaluation(const RunConfig& config) {
  return first_of(missing_for(config, RunUse::kEvaluation));
}

Status check_against_model(const RunConfig& config, int64_t max_position_embeddings) {
  if (config.data.sequence_length <= max_position_embeddings) return Ok{};
  return wrong_setting(fmt::format("data.sequence_length ({}) exceeds the model's {} positions",
                                   config.data.sequence_length, max_position_embeddings),
                       fmt::format("set data.sequence_length={}", max_position_embeddings));
}

}  // namespace plimsoll::settings
