// The settings of `training`, as settings.cpp has the others.
#include <fmt/format.h>

#include <map>

#include "optimizers/optimizer_list.h"
#include "settings/declare.h"
#include "settings/schedule.h"

namespace plimsoll::settings {
namespace {

constexpr double kMaxBatch = 0x1p24;  // sequences a step
/// Nothing is the word auto.
Setting automatic(Setting setting) {
  setting.absent = "auto";
  return setting;
}

constexpr double kLeastScale = 0x1p-100,
                 kMostScale = 0x1p100;  // of the loss: normal in fp32, its inverse too

/// The one place of the training state's dtypes.
void add_state(std::vector<Setting>& list) {
  const auto add = [&](Setting setting) { list.push_back(std::move(setting)); };
  add(choice(PLIMSOLL_CHOICE(training.state.weights), kWhat,
             "dtype of the weights: fp32, or the format of training.precision"));
  Setting masters = plain(PLIMSOLL_FIELD(training.state.master_weights), kWhat,
                          "fp32 master weights of 16-bit weights; auto: if weights have 16 bits");
  masters.absent = "auto";
  add(std::move(masters));
  add(choice(PLIMSOLL_CHOICE(training.state.gradients), kWhat,
             "dtype of gradients that are not accumulated"));
  Setting accumulators =
      choice(PLIMSOLL_CHOICE(training.state.accumulators), kWhat,
             "dtype of accumulated gradients; bf16: rounded, results depend on the micro-batches");
  accumulators.choices = {"fp32", "bf16"};
  add(std::move(accumulators));
  add(choice(PLIMSOLL_CHOICE(training.state.moments), kWhat,
             "dtype of the optimizer's moments; fp8_lm, coat: FP8 codes with scales, of adamw and adam"));
  add(choice(PLIMSOLL_CHOICE(training.state.rounding), kWhat,
             "rounding of state that is kept only in bf16; auto: stochastic"));
}

void add_training(std::vector<Setting>& list) {
  const auto add = [&](Setting setting) { list.push_back(std::move(setting)); };
  add(number(PLIMSOLL_FIELD(training.global_batch_size), kWhat,
             "sequences per optimizer step (effective batch); auto: the fastest without accumulation", 1,
             kMaxBatch, "auto"));
  add(number(PLIMSOLL_FIELD(training.micro_batch_size), kHow, "sequences that are computed at once", 1,
             kMaxBatch, "auto"));
  add(number(PLIMSOLL_FIELD(training.gradient_accumulation_steps), kHow,
             "micro-batches per step; times micro_batch_size it is global_batch_size", 1, kMaxBatch, "auto"));
  add(number(PLIMSOLL_FIELD(training.max_steps), kWhat, "optimizer steps of the run", 1, kMaxCount));
  add(above(PLIMSOLL_FIELD(training.num_epochs), kWhat,
            "instead of max_steps: epochs over the data; one if neither is given", 0, 1e9));
  add(choice(PLIMSOLL_CHOICE(training.precision), kWhat, "precision of the matrix products"));
  add(plain(PLIMSOLL_FIELD(training.precision_overrides), kWhat,
            "other precision for matching ops or layers: {lm_head: fp32}; the first match wins",
            {"fp32", "tf32", "bf16", "fp16", "fp8"}));
  add(plain(PLIMSOLL_FIELD(training.residual_in_fp32), kWhat,
            "keep the residual stream fp32; false: in bf16 or fp16, as training.precision says"));
  add(plain(PLIMSOLL_FIELD(training.fp8.recipe), kWhat, "recipe of the scales",
            {"delayed", "current", "block", "mxfp8", "nvfp4"}));
  add(number(PLIMSOLL_FIELD(training.fp8.margin), kWhat, "powers of two left free above the largest value", 0,
             16));
  add(plain(PLIMSOLL_FIELD(training.fp8.fp8_format), kWhat, "E4M3 everywhere, or E5M2 for gradients",
            {"hybrid", "e4m3"}));
  add(number(PLIMSOLL_FIELD(training.fp8.amax_history_len), kWhat, "steps that delayed scaling looks back", 1,
             65536));
  add(plain(PLIMSOLL_FIELD(training.fp8.amax_compute_algo), kWhat,
            "scale by the largest value of the history, or by the last", {"max", "most_recent"}));
  add(number(PLIMSOLL_FIELD(training.fp8.keep_last_layers), kWhat,
             "share of the model's layers, its last ones, whose products stay in bf16", 0, 1));
  add(number(PLIMSOLL_FIELD(training.fp8.stochastic_rounding), kWhat,
             "nvfp4: round gradients stochastically; auto: true", 0, 1, "auto"));
  add(number(PLIMSOLL_FIELD(training.fp8.hadamard), kWhat,
             "nvfp4: Hadamard transform of the operands of the weights' gradients; auto: true", 0, 1,
             "auto"));
  add(plain(PLIMSOLL_FIELD(training.fp8.quantized_activations), kWhat,
            "backward reads inputs of norms and activations from FP8 copies, which need less memory"));
  add(above(PLIMSOLL_FIELD(training.loss_scale.fixed), kWhat,
            "a static scale; the same as training.loss_scale=NUMBER", kLeastScale, kMostScale));
  add(above(PLIMSOLL_FIELD(training.loss_scale.init_scale), kWhat, "initial scale", kLeastScale, kMostScale));
  add(above(PLIMSOLL_FIELD(training.loss_scale.growth_factor), kWhat,
            "factor after growth_interval clean steps", 1, 1e6));
  add(above(PLIMSOLL_FIELD(training.loss_scale.backoff_factor), kWhat, "factor after an overflow", 0, 0.999));
  add(number(PLIMSOLL_FIELD(training.loss_scale.growth_interval), kWhat, "clean steps before the scale grows",
             1, 0x1p24));
  add(above(PLIMSOLL_FIELD(training.loss_scale.min_scale), kWhat,
            "a run whose scale falls below this has diverged", kLeastScale, kMostScale));
  add_state(list);
  add(plain(PLIMSOLL_FIELD(training.optimizer), kWhat,
            "optimizer; adam is adamw without decay, adam_l2 is torch.optim.Adam, sgd torch.optim.SGD",
            {"adamw", "adam", "adam_l2", "sgd", "lion", "adamw_8bit", "adafactor", "muon"}));
  add(number(PLIMSOLL_FIELD(training.learning_rate), kWhat, "peak learning rate", 0, 1e6));
  add(plain(PLIMSOLL_FIELD(training.lr_scheduler), kWhat, "learning-rate schedule", schedule_names()));
  const auto optimizers = optimizers::optimizer_names();
  takes_only(list, "training.optimizer", {optimizers.begin(), optimizers.end()});
  only_with(list, {"training.residual_in_fp32"}, {"training.precision", {"bf16", "fp16", "fp8"}});
  only_with(list, {"training.fp8."}, {.path = "training.precision", .values = {"fp8"}, .or_overrides = true});
  only_with(list, {"training.fp8.keep_last_layers"}, {"training.precision", {"fp8"}});
  const auto with_recipe = [](const Words& recipes) {
    return OnlyWith{.path = "training.fp8.recipe", .values = recipes, .needs_effect = true};
  };
  only_with(list, {"training.fp8.margin", "training.fp8.amax_"}, with_recipe({"delayed"}));
  only_with(list, {"training.fp8.fp8_format"}, with_recipe({"delayed", "current"}));
  only_with(list, {"training.fp8.stochastic_rounding", "training.fp8.hadamard"}, with_recipe({"nvfp4"}));
  only_with(list, {"training.loss_scale."},
            {.path = "training.precision", .values = {"fp16"}, .or_overrides = true, .is_noted = true});
}

void add_reporting(std::vector<Setting>& list) {
  const auto add = [&](Setting setting) { list.push_back(std::move(setting)); };
  add(plain(PLIMSOLL_FIELD(training.logging_first_step), kHow, "report the first step too"));
  add(plain(PLIMSOLL_FIELD(training.logging_nan_inf_filter), kHow,
            "leave losses that are not finite out of the reported mean"));
  add(plain(PLIMSOLL_FIELD(training.report_to), kHow, "tensorboard: write event files for TensorBoard"));
  add(plain(PLIMSOLL_FIELD(training.logging_dir), kHow,
            "folder of the event files; null: runs in output.dir"));
  add(plain(PLIMSOLL_FIELD(training.run_name), kHow,
            "the run's name in TensorBoard: a folder in logging_dir; null: none"));
  takes_only(list, "training.report_to", {"[]", "[none]", "[tensorboard]"},
             "report_to: tensorboard writes event files; docs/run-folder.md has Python scripts that send "
             "them, or events.jsonl, to wandb or mlflow");
  only_with(list, {"training.logging_dir", "training.run_name"},
            {.path = "training.report_to", .values = {"[tensorboard]"}, .is_noted = true});
}

/// What each optimizer's file says that it reads, with the optimizers that do.
void needs_of_optimizers(std::vector<Setting>& list) {
  std::map<std::string, Words> readers;
  optimizers::for_each_optimizer([&](const optimizers::OptimizerDef& def) {
    for (const std::string_view setting : def.settings)
      readers[fmt::format("training.{}", setting)].emplace_back(def.name);
  });
  for (const auto& [name, values] : readers)
    only_with(list, {name},
              {.path = "training.optimizer", .values = values, .is_noted = !name.ends_with('.')});
}

void needs_of_schedule_and_rule(std::vector<Setting>& list) {
  const auto scheduled = [&](std::initializer_list<std::string> names, const Words& values) {
    for (const std::string& name : names)
      only_with(list, {"training.lr_scheduler_kwargs." + name}, {"training.lr_scheduler", values});
  };
  scheduled({"num_cycles"}, {"cosine", "cosine_with_restarts", "warmup_stable_decay", "wsd"});
  scheduled({"power", "lr_end"}, {"polynomial"});
  scheduled({"min_lr_ratio", "num_decay_steps", "decay_type", "warmup_type"}, {"warmup_stable_decay", "wsd"});
  scheduled({"step_size", "gamma"}, {"step"});
  scheduled({"pct_start", "div_factor", "final_div_factor"}, {"one_cycle"});
  for_group(list,
            {"training.learning_rate", "training.lr_scheduler", "training.lr_scheduler_kwargs.",
             "training.warmup_"},
            [](Setting& setting) { setting.is_of_rate = true; });
  // transformers passes over these, and its users' files carry them for whatever optimizer and schedule.
  only_with(list, {"training.warmup_"},
            {.path = "training.lr_scheduler",
             .values = {"constant_with_warmup", "linear", "cosine", "cosine_with_restarts", "polynomial",
                        "warmup_stable_decay", "wsd", "step"},
             .is_noted = true});
  // Its rate follows from the step alone.
  const auto with_a_rate = [](bool is_noted) {
    return OnlyWith{.path = "training.adafactor.relative_step", .values = {"false"}, .is_noted = is_noted};
  };
  only_with(list, {"training.learning_rate"}, with_a_rate(false));
  only_with(list, {"training.lr_scheduler"}, with_a_rate(true));
  needs_of_optimizers(list);
}

void add_adafactor(std::vector<Setting>& list) {
  const auto add = [&](Setting setting) { list.push_back(std::move(setting)); };
  add(plain(PLIMSOLL_FIELD(training.adafactor.scale_parameter), kWhat,
            "learning rate relative to each tensor's root mean square"));
  add(plain(PLIMSOLL_FIELD(training.adafactor.relative_step), kWhat,
            "learning rate 1/sqrt(step), at most 0.01, instead of learning_rate and schedule"));
  add(plain(PLIMSOLL_FIELD(training.adafactor.warmup_init), kWhat,
            "with relative_step: learning rate of at most 1e-6 times the step"));
  add(above(PLIMSOLL_FIELD(training.adafactor.clip_threshold), kWhat, "maximum RMS of an update", 0, 1e6));
  add(number(PLIMSOLL_FIELD(training.adafactor.decay_rate), kWhat,
             "the second moment's decay is 1 - step^decay_rate", -1, 0));
  add(number(PLIMSOLL_FIELD(training.adafactor.beta1), kWhat, "decay of a first moment; null: there is none",
             0, 0.999999));
  add(number(PLIMSOLL_FIELD(training.adafactor.eps), kWhat,
             "added to squared gradients; with scale_parameter: least root mean square", 0, 1));
}

void add_muon(std::vector<Setting>& list) {
  list.push_back(number(PLIMSOLL_FIELD(training.muon.momentum), kWhat, "momentum", 0, 0.999999));
  list.push_back(plain(PLIMSOLL_FIELD(training.muon.nesterov), kWhat, "Nesterov momentum"));
  list.push_back(number(PLIMSOLL_FIELD(training.muon.ns_steps), kWhat,
                        "Newton-Schulz iterations that orthogonalise an update", 1, 99));
  list.push_back(plain(PLIMSOLL_FIELD(training.muon.adjust_lr_fn), kWhat,
                       "scaling of the learning rate by matrix shape; match_rms_adamw suits AdamW's rates",
                       {"original", "match_rms_adamw"}));
}

void add_schedule_and_rule(std::vector<Setting>& list) {
  const auto add = [&](Setting setting) { list.push_back(std::move(setting)); };
  add(number(PLIMSOLL_FIELD(training.lr_scheduler_kwargs.num_cycles), kWhat, "cycles", 0, 1e6));
  add(number(PLIMSOLL_FIELD(training.lr_scheduler_kwargs.power), kWhat, "exponent", 0, 100));
  add(number(PLIMSOLL_FIELD(training.lr_scheduler_kwargs.lr_end), kWhat, "final learning rate", 0, 1e6));
  add(number(PLIMSOLL_FIELD(training.lr_scheduler_kwargs.min_lr_ratio), kWhat,
             "smallest share of the learning rate", 0, 1));
  add(number(PLIMSOLL_FIELD(training.lr_scheduler_kwargs.num_decay_steps), kWhat,
             "steps of decay; null: a tenth of the run", 0, kMaxCount));
  add(choice(PLIMSOLL_CHOICE(training.lr_scheduler_kwargs.decay_type), kWhat, "form of the decay"));
  add(choice(PLIMSOLL_CHOICE(training.lr_scheduler_kwargs.warmup_type), kWhat, "form of the warm-up"));
  add(number(PLIMSOLL_FIELD(training.lr_scheduler_kwargs.step_size), kWhat,
             "steps between drops; null: a third of the run", 1, kMaxCount));
  add(number(PLIMSOLL_FIELD(training.lr_scheduler_kwargs.gamma), kWhat, "factor of a drop", 0, 1));
  add(above(PLIMSOLL_FIELD(training.lr_scheduler_kwargs.pct_start), kWhat,
            "share of the steps with a rising learning rate", 0, 1));
  add(number(PLIMSOLL_FIELD(training.lr_scheduler_kwargs.div_factor), kWhat,
             "peak divided by the initial learning rate", 1, 1e12));
  add(number(PLIMSOLL_FIELD(training.lr_scheduler_kwargs.final_div_factor), kWhat,
             "first over final learning rate", 1, 1e12));
  add(number(PLIMSOLL_FIELD(training.warmup_steps), kWhat, "steps in which the learning rate rises from 0", 0,
             kMaxCount));
  add(number(PLIMSOLL_FIELD(training.warmup_ratio), kWhat,
             "instead of warmup_steps: share of the steps, rounded up", 0, 1));
  add(number(PLIMSOLL_FIELD(training.adam_beta1), kWhat, "decay of the first moment", 0, 0.999999));
  add(number(PLIMSOLL_FIELD(training.adam_beta2), kWhat,
             "decay of the second moment; lion: of its only moment, default 0.99", 0, 0.999999999));
  add(above(PLIMSOLL_FIELD(training.adam_epsilon), kWhat, "added to the root of the second moment", 0, 1));
  add(number(PLIMSOLL_FIELD(training.momentum), kWhat, "momentum; 0: no buffer", 0, 1));
  add(number(PLIMSOLL_FIELD(training.dampening), kWhat, "dampening of the gradient", 0, 1));
  add(plain(PLIMSOLL_FIELD(training.nesterov), kWhat, "Nesterov momentum; needs momentum and no dampening"));
  add_adafactor(list);
  add_muon(list);
  add(number(PLIMSOLL_FIELD(training.weight_decay), kWhat,
             "weight decay, decoupled; sgd: added to the gradient; sgd and adafactor: default 0", 0, 1e3));
  add(choice(PLIMSOLL_CHOICE(training.weight_decay_scope), kWhat,
             "decayed parameters; matrices: no biases, no norms; all: every parameter"));
  add(plain(PLIMSOLL_FIELD(training.param_groups), kWhat,
            "parameters with hyper-parameters of their own, by patterns of names; the first match wins"));
  add(plain(PLIMSOLL_FIELD(training.freeze), kWhat,
            "parameters that are not trained, by patterns such as \"model.layers.[0-3].*\""));
  add(plain(PLIMSOLL_FIELD(training.unfreeze), kWhat, "exceptions from freeze: parameters that are trained"));
  add(number(PLIMSOLL_FIELD(training.ema_decay), kWhat,
             "evaluate and save an exponential average of the weights with this decay; null: none", 0,
             0.999999999));
  add(number(PLIMSOLL_FIELD(training.max_grad_norm), kWhat,
             "clip the gradient to this norm; 0 or null: no clipping", 0, 1e12));
  add(number(PLIMSOLL_FIELD(training.label_smoothing), kWhat,
             "share of each target that is spread evenly over all classes", 0, 0.999999));
  add(number(PLIMSOLL_FIELD(training.seed), kWhat, "seed of initial weights, data order and every random op",
             0, 0x1p53));
  add(number(PLIMSOLL_FIELD(training.logging_steps), kHow, "report every N steps", 1, kMaxCount));
  add(plain(PLIMSOLL_FIELD(training.eval_strategy), kHow,
            "when to evaluate; no: never; steps: every eval_steps, else every logging_steps",
            {"auto", "no", "steps", "epoch"}));
  add(number(PLIMSOLL_FIELD(training.eval_steps), kHow,
             "evaluate every N steps and after the last; 0: only after the last", 0, kMaxCount));
  add(plain(PLIMSOLL_FIELD(training.load_best_model_at_end), kHow,
            "save the best checkpoint as final/; save_steps must be a multiple of eval_steps"));
  add(plain(PLIMSOLL_FIELD(training.metric_for_best_model), kHow,
            "metric of the best model: loss (null), accuracy, f1, eval_<set>_loss"));
  add(automatic(plain(PLIMSOLL_FIELD(training.greater_is_better), kHow,
                      "whether a larger metric is better; auto: no for losses, perplexity and mse")));
  add(number(PLIMSOLL_FIELD(training.early_stopping_patience), kHow,
             "stop after N evaluations in a row without improvement", 1, kMaxCount));
  add(number(PLIMSOLL_FIELD(training.early_stopping_threshold), kHow, "smallest improvement that counts", 0,
             1e9));
  only_with(list, {"training.early_stopping_threshold"},
            {.path = "training.early_stopping_patience", .is_noted = true});
  add_reporting(list);
  needs_of_schedule_and_rule(list);
}

}  // namespace

void add_training_settings(std::vector<Setting>& list) {
  add_training(list);
  add_schedule_and_rule(list);
}

}  // namespace plimsoll::settings
