// transformers' Trainer, and what stands on it: batch, length, warm-up, precision; then the defaults.
#include <fmt/format.h>

#include <cmath>

#include "importing/settle.h"

namespace plimsoll::importing {
namespace {

constexpr Default kTransformers[] = {
    {"training.learning_rate", "5e-5", "transformers' default"},
    {"training.lr_scheduler", "linear", "transformers' default"},
    {"training.weight_decay", "0", "transformers' default"},
    {"training.weight_decay_scope", "matrices", "the Trainer spares biases and norms"},
    {"training.logging_steps", "500", "transformers' default"},
    {"data.packing", "pad", "the Trainer has one example a row"},
};
constexpr Default kTrl[] = {
    {"training.learning_rate", "2e-5", "TRL's default"},
    {"training.lr_scheduler", "linear", "transformers' default"},
    {"training.weight_decay", "0", "transformers' default"},
    {"training.weight_decay_scope", "matrices", "the Trainer spares biases and norms"},
    {"training.logging_steps", "10", "TRL's default"},
};
constexpr Default kAxolotl[] = {
    {"training.lr_scheduler", "cosine", "axolotl's default"},
    {"training.weight_decay", "0", "axolotl's default"},
    {"training.weight_decay_scope", "matrices", "the Trainer spares biases and norms"},
};

std::span<const Default> defaults_of(Dialect dialect) {
  if (dialect == Dialect::kTrl) return kTrl;
  if (dialect == Dialect::kAxolotl) return kAxolotl;
  return kTransformers;
}

/// The Trainer's key, where it has one, else DeepSpeed's; transformers refuses two that differ.
const SourceKey* either(Draft& draft, const SourceKey* own, const SourceKey* other) {
  if (own == nullptr || other == nullptr) return own != nullptr ? own : other;
  if (number_in(own->value) != number_in(other->value))
    draft.wrong(*other, fmt::format("{}, as {} says", own->value.describe(), own->name),
                "write \"auto\" there");
  return own;
}

/// batch_size of axolotl is the whole step's.
void settle_trainer_batch(Draft& draft, Dialect dialect) {
  const SourceKey* micro = draft.find(dialect, "per_device_train_batch_size");
  if (micro == nullptr) micro = draft.find(dialect, "per_gpu_train_batch_size");
  const SourceKey* steps = draft.find(dialect, "gradient_accumulation_steps");
  const SourceKey* ds_micro = draft.find(Dialect::kDeepspeed, "train_micro_batch_size_per_gpu");
  const SourceKey* ds_steps = draft.find(Dialect::kDeepspeed, "gradient_accumulation_steps");
  const SourceKey* global = draft.find(dialect, "batch_size");
  if (global == nullptr) global = draft.find(Dialect::kDeepspeed, "train_batch_size");
  settle_batch(draft, {.micro = either(draft, micro, ds_micro),
                       .accumulation = either(draft, steps, ds_steps),
                       .global = global,
                       .default_micro = dialect == Dialect::kAxolotl ? 1 : 8});
  for (const SourceKey* key : {ds_micro, ds_steps})
    if (key != nullptr && !draft.is_accounted(*key)) draft.joined(*key, "training.global_batch_size", "");
}

void settle_length(Draft& draft, Dialect dialect) {
  const SourceKey* steps = draft.find(dialect, "max_steps");
  const SourceKey* epochs = draft.find(dialect, "num_train_epochs");
  const auto count = steps == nullptr ? std::optional<double>{} : number_in(steps->value);
  if (steps != nullptr && !count) draft.wrong(*steps, "an integer");
  if (count && *count > 0) {
    draft.map(*steps, "training.max_steps", steps->value);
    if (epochs != nullptr) draft.harmless(*epochs, "max_steps says the length of the run");
    return;
  }
  if (steps != nullptr) draft.harmless(*steps, "num_train_epochs sets the length of the run");
  if (epochs != nullptr) return draft.map(*epochs, "training.num_epochs", epochs->value);
  const bool is_axolotl = dialect == Dialect::kAxolotl;
  draft.set_default("training.num_epochs", is_axolotl ? "1" : "3",
                    is_axolotl ? "axolotl's default" : "transformers' default");
}

/// From version 5 on, warmup_steps below 1 is a share of the steps.
void settle_warmup(Draft& draft, Dialect dialect) {
  const SourceKey* steps = draft.find(dialect, "warmup_steps");
  const SourceKey* ratio = draft.find(dialect, "warmup_ratio");
  const auto count = steps == nullptr ? std::optional<double>{} : number_in(steps->value);
  if (steps != nullptr && !count) draft.wrong(*steps, "a number of at least 0");
  if (count && *count > 0) {
    if (*count < 1)
      draft.map(*steps, "training.warmup_ratio", steps->value, "below 1 it is a share of the steps");
    else
      draft.map(*steps, "training.warmup_steps", steps->value);
    if (ratio != nullptr) draft.harmless(*ratio, "warmup_steps goes before it");
    return;
  }
  if (ratio != nullptr && number_in(ratio->value).value_or(1) != 0) {
    draft.map(*ratio, "training.warmup_ratio", ratio->value);
    if (steps != nullptr) draft.harmless(*steps, "0 leaves it to warmup_ratio");
    return;
  }
  if (steps != nullptr) draft.map(*steps, "training.warmup_steps", steps->value);
  if (ratio != nullptr) draft.harmless(*ratio, "there is no warm-up");
  if (steps == nullptr && ratio == nullptr && dialect == Dialect::kAxolotl)
    draft.set_default("training.warmup_ratio", "0.03", "axolotl's default; there it is at most 100 steps");
}

/// The words that load a model: its own weights in 16 bits are trained as such.
void settle_dtype(Draft& draft, Dialect dialect) {
  for (const char* name :
       {"dtype", "torch_dtype", "model_init_kwargs.dtype", "model_init_kwargs.torch_dtype"}) {
    const SourceKey* key = draft.find(dialect, name);
    if (key == nullptr) continue;
    const std::string& text = key->value.text;
    if (text == "bfloat16" || text == "torch.bfloat16" || text == "bf16")
      train_in_bf16(draft, *key, "weights, gradients and moments in bf16, without masters");
    else if (text == "float32" || text == "torch.float32" || text == "fp32")
      draft.map(*key, "training.state.weights", io::Tree::of(std::string("fp32")));
    else if (text == "float16" || text == "torch.float16" || text == "fp16")
      draft.no_equal(*key, "weights are kept in fp32: no update fits in fp16 alone",
                     "training.state.weights");
    else
      draft.wrong(*key, "auto, bfloat16, float16 or float32");
  }
  for (const Source& source : draft.sources())
    for (const SourceKey& key : source.keys)
      if ((key.pattern.ends_with("dtype")) && key.value.text == "auto" && source.dialect == dialect)
        draft.no_equal(
            key, "weights are kept in fp32 whatever the file has; training.state.weights: bf16 keeps 16 bits",
            "training.state.weights");
}

void settle_precision(Draft& draft, Dialect dialect) {
  settle_dtype(draft, dialect);
  const bool is_decided = draft.has("training.precision");
  const char* const names[] = {"bf16", "fp16", "tf32"};
  const SourceKey* chosen = nullptr;
  for (const char* name : names) {
    const SourceKey* key = draft.find(dialect, name);
    const auto on = switch_of(draft, key);
    if (!on) continue;
    if (!*on)
      draft.harmless(*key, "false leaves it");
    else if (is_decided)
      draft.joined(*key, "training.precision", "");
    else if (chosen == nullptr)
      draft.map(*(chosen = key), "training.precision", io::Tree::of(std::string(name)));
    else if (std::string_view(name) == "tf32")
      draft.harmless(*key, "products of 16 bits are not computed in tf32");
    else
      draft.wrong(*key, "one of bf16 and fp16");
  }
  for (const Source& source : draft.sources())  // axolotl's auto: where the machine has it
    for (const SourceKey& key : source.keys)
      if (source.dialect == dialect && key.value.text == "auto" &&
          (key.pattern == "bf16" || key.pattern == "tf32")) {
        if (key.pattern == "bf16")
          draft.map(key, "training.precision", io::Tree::of(std::string("bf16")));
        else
          draft.harmless(key, "auto has no effect");
      }
  const bool any = draft.has("training.precision") || draft.find(dialect, "bf16") != nullptr;
  if (dialect == Dialect::kTrl && !any && !is_decided)
    draft.set_default("training.precision", "bf16", "TRL's default, unless fp16 is set");
}

/// The 16 bits of an "auto" of DeepSpeed's are those of all weights, with masters, as without "auto".
void keep_as_deepspeed_does(Draft& draft) {
  const Line* precision = draft.line("training.precision");
  if (precision == nullptr || draft.has("training.state.weights")) return;
  const std::string format = precision->value.text;
  if (format != "bf16" && format != "fp16") return;
  for (const Source& source : draft.sources())
    for (const SourceKey& key : source.keys)
      if (source.dialect == Dialect::kDeepspeed && key.pattern == format + ".enabled" &&
          key.value.text == "auto") {
        draft.set("training.state.weights", precision->value,
                  "DeepSpeed keeps weights so, with fp32 masters");
        draft.set("training.residual_in_fp32", io::Tree::of(false), "as the weights");
      }
}

/// DeepSpeed's schedule goes before the Trainer's own.
void leave_to_deepspeed(Draft& draft, Dialect dialect) {
  if (draft.find(Dialect::kDeepspeed, "scheduler.type") != nullptr)
    if (const SourceKey* key = draft.find(dialect, "lr_scheduler_type"))
      draft.harmless(*key, "DeepSpeed's scheduler goes before it");
  if (draft.find(Dialect::kDeepspeed, "optimizer.type") != nullptr)
    if (const SourceKey* key = draft.find(dialect, "optim"))
      draft.harmless(*key, "DeepSpeed's optimizer goes before it");
  const SourceKey* file = draft.find(dialect, "deepspeed");
  if (file != nullptr && draft.has_dialect(Dialect::kDeepspeed))
    draft.harmless(*file, "it was imported together with this file");
}

/// The old name of optim: adafactor.
void settle_adafactor(Draft& draft, Dialect dialect) {
  const SourceKey* adafactor = draft.find(dialect, "adafactor");
  if (adafactor != nullptr && switch_of(draft, adafactor) == false)
    draft.harmless(*adafactor, "optim decides it");
}

void settle_recompute(Draft& draft, Dialect dialect) {
  for (const char* name : {"gradient_checkpointing", "activation_checkpointing"})
    if (const SourceKey* key = draft.find(dialect, name)) {
      const bool on = bool_in(key->value).value_or(true);
      if (on)
        draft.map_words(*key, "memory.recompute", "full,auto", "the result is the same");
      else
        draft.harmless(*key, "the planner chooses it within memory.budget; the result is the same");
    }
}

}  // namespace

void settle_trainer(Draft& draft, Dialect dialect) {
  leave_to_deepspeed(draft, dialect);
  settle_adafactor(draft, dialect);
  settle_trainer_batch(draft, dialect);
  settle_length(draft, dialect);
  settle_warmup(draft, dialect);
  settle_precision(draft, dialect);
  keep_as_deepspeed_does(draft);
  settle_recompute(draft, dialect);
  settle_sft(draft, dialect);
  settle_adapters(draft, dialect);
  settle_saving(draft, dialect);
}

void set_trainer_defaults(Draft& draft, Dialect dialect) {
  if (const Line* rule = draft.line("training.optimizer"); rule != nullptr && rule->value.text == "lion")
    draft.set_default("training.adam_beta2", "0.999", "transformers' default, of Lion too");
  for (const Default& row : defaults_of(dialect))
    draft.set_default(std::string(row.setting), row.words, std::string(row.comment));
}

}  // namespace plimsoll::importing
