// The one list of settings. A line names the field of RunConfig (its path is the setting's path), whether it
// says what is trained or how, one line of help and what it may be.
#include "settings/settings.h"

#include <algorithm>

#include "optimizers/optimizer.h"
#include "settings/declare.h"
#include "settings/schedule.h"

namespace plimsoll {
namespace {

constexpr SettingKind kWhat = SettingKind::kWhat;
constexpr SettingKind kHow = SettingKind::kHow;

constexpr double kMaxCount = 0x1p40;   // steps, intervals
constexpr double kMaxTokens = 0x1p28;  // a sequence
constexpr double kMaxBatch = 0x1p24;   // sequences a step
constexpr double kLeastScale = 0x1p-100,
                 kMostScale = 0x1p100;  // of the loss: normal in fp32, its inverse too

void add_model_and_data(std::vector<Setting>& list) {
  const auto add = [&](Setting setting) { list.push_back(std::move(setting)); };
  add(plain(PLIMSOLL_FIELD(model.path), kWhat,
            "a Hugging Face model directory, its config.json, or a hub id in the local cache"));
  add(plain(PLIMSOLL_FIELD(model.preset), kWhat,
            "instead of path: a public family by name, such as llama-2-7b or gpt2"));
  add(plain(PLIMSOLL_FIELD(model.config), kWhat, "instead of path: the fields of a config.json"));
  add(plain(PLIMSOLL_FIELD(model.overrides), kWhat,
            "fields put over the model's config, such as {num_hidden_layers: 4}"));
  add(plain(PLIMSOLL_FIELD(model.init), kWhat,
            "first weights; auto: pretrained with a path, random otherwise",
            {"auto", "pretrained", "random"}));
  add(plain(PLIMSOLL_FIELD(data.train), kWhat,
            "training data: .jsonl, .txt, .npy, token shards; a file, a glob or a list of them"));
  add(plain(PLIMSOLL_FIELD(data.eval), kWhat, "held-out data, as data.train"));
  add(above(PLIMSOLL_FIELD(data.weights), kWhat,
            "a mixture: one weight an entry of data.train, such as [3, 1]; none: entries are joined", 0,
            1e12));
  add(number(PLIMSOLL_FIELD(data.eval_fraction), kWhat,
             "in place of data.eval: share of data.train's documents held out, by their hash", 0, 0.9));
  add(number(PLIMSOLL_FIELD(data.sequence_length), kWhat, "tokens a sequence", 2, kMaxTokens));
  add(plain(PLIMSOLL_FIELD(data.shuffle), kWhat, "draw the sequences of an epoch in a random order"));
  add(plain(PLIMSOLL_FIELD(data.packing), kWhat,
            "best_fit: documents side by side, kept apart; pad: one a sequence; stream: joined",
            {"auto", "best_fit", "pad", "stream"}));
  add(number(PLIMSOLL_FIELD(data.buckets), kWhat,
             "lengths to pad to, a program each; a number: chosen from the data's lengths", 2, kMaxTokens));
  add(plain(PLIMSOLL_FIELD(data.long_documents), kWhat, "documents longer than a sequence", {"cut", "drop"}));
  add(number(PLIMSOLL_FIELD(data.packing_window), kWhat, "documents that are packed together", 1, 0x1p24));
  add(plain(PLIMSOLL_FIELD(data.tokenizer), kWhat,
            "auto: the model directory's tokenizer.json, else bytes; bytes; or a path"));
  add(plain(PLIMSOLL_FIELD(data.chat_template), kWhat, "a template file in place of the model's own"));
  add(plain(PLIMSOLL_FIELD(data.loss), kWhat,
            "which tokens are targets; auto: assistant's turns, completions, all of a text",
            {"auto", "all", "completions", "assistant"}));
  add(plain(PLIMSOLL_FIELD(data.text_key), kWhat,
            "JSON lines: the member that holds the text; empty: by the members that a line has"));
  add(plain(PLIMSOLL_FIELD(data.append_eos), kWhat, "end each document with the end-of-text token"));
  add(plain(PLIMSOLL_FIELD(data.on_error), kWhat,
            "examples that cannot be read: stop, or pass over and count", {"fail", "skip"}));
  add(plain(PLIMSOLL_FIELD(data.cache_dir), kHow,
            "folder of tokenized data and packing; null: data in output.dir"));
  add(number(PLIMSOLL_FIELD(data.num_workers), kHow,
             "threads that read ahead; auto: one, and more where a step waits for data", 1, 64, "auto"));
  add(number(PLIMSOLL_FIELD(data.prefetch_factor), kHow, "steps whose data is read ahead", 1, 64));
  add(planned("data.max_train_samples", kWhat, "documents to train on at most", "shorten the file itself"));
  add(planned("data.max_eval_samples", kWhat, "documents to evaluate on at most", "shorten the file itself"));
  only_with(list, {"data.buckets"}, {"data.packing", {"pad"}});
  only_with(list, {"data.packing_window"},
            {.path = "data.packing", .values = {"auto", "best_fit"}, .is_noted = true});
}

/// The one place of the training state's dtypes.
void add_state(std::vector<Setting>& list) {
  const auto add = [&](Setting setting) { list.push_back(std::move(setting)); };
  add(plain(PLIMSOLL_FIELD(training.state.weights), kWhat,
            "what the weights are kept in: fp32, or the format of training.precision",
            {"fp32", "bf16", "fp16"}));
  Setting masters = plain(PLIMSOLL_FIELD(training.state.master_weights), kWhat,
                          "fp32 masters beside 16-bit weights; auto: wherever weights have 16 bits");
  masters.absent = "auto";
  add(std::move(masters));
  add(plain(PLIMSOLL_FIELD(training.state.gradients), kWhat,
            "gradients that are not accumulated; accumulators are fp32", {"fp32", "bf16", "fp16"}));
  add(plain(PLIMSOLL_FIELD(training.state.moments), kWhat, "the optimizer's moments", {"fp32", "bf16"}));
  add(plain(PLIMSOLL_FIELD(training.state.rounding), kWhat,
            "of what the update keeps in bf16 alone; auto: stochastic", {"auto", "nearest", "stochastic"}));
}

void add_training(std::vector<Setting>& list) {
  const auto add = [&](Setting setting) { list.push_back(std::move(setting)); };
  add(number(PLIMSOLL_FIELD(training.global_batch_size), kWhat,
             "sequences an optimizer step, over everything", 1, kMaxBatch));
  add(number(PLIMSOLL_FIELD(training.micro_batch_size), kHow, "sequences at once", 1, kMaxBatch, "auto"));
  add(number(PLIMSOLL_FIELD(training.gradient_accumulation_steps), kHow,
             "micro-batches a step; times micro_batch_size it is global_batch_size", 1, kMaxBatch, "auto"));
  add(number(PLIMSOLL_FIELD(training.max_steps), kWhat, "optimizer steps of the run", 1, kMaxCount));
  add(above(PLIMSOLL_FIELD(training.num_epochs), kWhat,
            "instead of max_steps: passes over the data; neither means one", 0, 1e9));
  add(plain(PLIMSOLL_FIELD(training.precision), kWhat, "arithmetic of the matrix products",
            {"fp32", "tf32", "bf16", "fp16", "fp8"}));
  add(plain(PLIMSOLL_FIELD(training.precision_overrides), kWhat,
            "products of matching ops or layers run in another: {lm_head: fp32}; the first match wins",
            {"fp32", "tf32", "bf16", "fp16"}));
  add(plain(PLIMSOLL_FIELD(training.residual_in_fp32), kWhat,
            "keep the residual stream fp32; false: in bf16 or fp16, as training.precision says"));
  add(plain(PLIMSOLL_FIELD(training.fp8.recipe), kWhat, "how scales are chosen",
            {"delayed", "current", "block", "mxfp8", "nvfp4"}));
  add(number(PLIMSOLL_FIELD(training.fp8.margin), kWhat, "powers of two kept free above the largest value", 0,
             16));
  add(plain(PLIMSOLL_FIELD(training.fp8.fp8_format), kWhat, "E4M3 everywhere, or E5M2 for gradients",
            {"hybrid", "e4m3"}));
  add(number(PLIMSOLL_FIELD(training.fp8.amax_history_len), kWhat, "steps that delayed scaling looks back", 1,
             65536));
  add(plain(PLIMSOLL_FIELD(training.fp8.amax_compute_algo), kWhat,
            "the largest value of the history, or the last", {"max", "most_recent"}));
  add(above(PLIMSOLL_FIELD(training.loss_scale.fixed), kWhat,
            "a static scale; a number in place of loss_scale's map means this", kLeastScale, kMostScale));
  add(above(PLIMSOLL_FIELD(training.loss_scale.init_scale), kWhat, "first scale", kLeastScale, kMostScale));
  add(above(PLIMSOLL_FIELD(training.loss_scale.growth_factor), kWhat,
            "factor after growth_interval clean steps", 1, 1e6));
  add(above(PLIMSOLL_FIELD(training.loss_scale.backoff_factor), kWhat, "factor after an overflow", 0, 0.999));
  add(number(PLIMSOLL_FIELD(training.loss_scale.growth_interval), kWhat, "clean steps before the scale grows",
             1, 0x1p24));
  add(above(PLIMSOLL_FIELD(training.loss_scale.min_scale), kWhat,
            "a run whose scale falls below this has diverged", kLeastScale, kMostScale));
  add_state(list);
  add(plain(PLIMSOLL_FIELD(training.optimizer), kWhat,
            "the update rule; adam is adamw without decay, sgd is torch.optim.SGD",
            {"adamw", "adam", "sgd", "adafactor", "lion", "adamw_8bit", "muon"}));
  add(number(PLIMSOLL_FIELD(training.learning_rate), kWhat, "peak learning rate", 0, 1e6));
  add(plain(PLIMSOLL_FIELD(training.lr_scheduler), kWhat, "course of the learning rate", schedule_names()));
  takes_only(list, "training.precision", {"fp32", "tf32", "bf16", "fp16"});
  const auto optimizers = optimizers::optimizer_names();
  takes_only(list, "training.optimizer", {optimizers.begin(), optimizers.end()});
  only_with(list, {"training.residual_in_fp32"}, {"training.precision", {"bf16", "fp16"}});
  only_with(list, {"training.fp8."}, {"training.precision", {"fp8"}});
  not_yet(list, {"training.fp8."}, "leave training.fp8 out; training.precision=bf16 computes in 16 bits");
  only_with(list, {"training.loss_scale."},
            {.path = "training.precision", .values = {"fp16"}, .or_overrides = true, .is_noted = true});
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
  // transformers passes over these, and its users' files carry them for whatever optimizer and schedule.
  only_with(list, {"training.warmup_"},
            {.path = "training.lr_scheduler",
             .values = {"constant_with_warmup", "linear", "cosine", "cosine_with_restarts", "polynomial",
                        "warmup_stable_decay", "wsd", "step"},
             .is_noted = true});
  only_with(list, {"training.adam_"},
            {.path = "training.optimizer", .values = {"adamw", "adam"}, .is_noted = true});
  only_with(list, {"training.momentum", "training.dampening", "training.nesterov"},
            {.path = "training.optimizer", .values = {"sgd"}, .is_noted = true});
}

void add_schedule_and_rule(std::vector<Setting>& list) {
  const auto add = [&](Setting setting) { list.push_back(std::move(setting)); };
  add(number(PLIMSOLL_FIELD(training.lr_scheduler_kwargs.num_cycles), kWhat, "waves", 0, 1e6));
  add(number(PLIMSOLL_FIELD(training.lr_scheduler_kwargs.power), kWhat, "exponent", 0, 100));
  add(number(PLIMSOLL_FIELD(training.lr_scheduler_kwargs.lr_end), kWhat, "last rate", 0, 1e6));
  add(number(PLIMSOLL_FIELD(training.lr_scheduler_kwargs.min_lr_ratio), kWhat, "least share of the rate", 0,
             1));
  add(number(PLIMSOLL_FIELD(training.lr_scheduler_kwargs.num_decay_steps), kWhat,
             "steps of decay; null: a tenth of all", 0, kMaxCount));
  add(plain(PLIMSOLL_FIELD(training.lr_scheduler_kwargs.decay_type), kWhat, "shape of the decay",
            {"linear", "cosine", "1-sqrt"}));
  add(plain(PLIMSOLL_FIELD(training.lr_scheduler_kwargs.warmup_type), kWhat, "shape of the warm-up",
            {"linear", "cosine", "1-sqrt"}));
  add(number(PLIMSOLL_FIELD(training.lr_scheduler_kwargs.step_size), kWhat,
             "steps between drops; null: a third of all", 1, kMaxCount));
  add(number(PLIMSOLL_FIELD(training.lr_scheduler_kwargs.gamma), kWhat, "factor of a drop", 0, 1));
  add(above(PLIMSOLL_FIELD(training.lr_scheduler_kwargs.pct_start), kWhat, "share of the steps that rise", 0,
            1));
  add(number(PLIMSOLL_FIELD(training.lr_scheduler_kwargs.div_factor), kWhat, "peak over first rate", 1,
             1e12));
  add(number(PLIMSOLL_FIELD(training.lr_scheduler_kwargs.final_div_factor), kWhat, "first over last rate", 1,
             1e12));
  add(number(PLIMSOLL_FIELD(training.warmup_steps), kWhat, "steps over which the rate rises from 0", 0,
             kMaxCount));
  add(number(PLIMSOLL_FIELD(training.warmup_ratio), kWhat,
             "instead of warmup_steps: share of the steps, rounded up", 0, 1));
  add(number(PLIMSOLL_FIELD(training.adam_beta1), kWhat, "decay of the first moment", 0, 0.999999));
  add(number(PLIMSOLL_FIELD(training.adam_beta2), kWhat, "decay of the second moment", 0, 0.999999999));
  add(above(PLIMSOLL_FIELD(training.adam_epsilon), kWhat, "added to the root of the second moment", 0, 1));
  add(number(PLIMSOLL_FIELD(training.momentum), kWhat, "share of the buffer that stays; 0: no buffer", 0, 1));
  add(number(PLIMSOLL_FIELD(training.dampening), kWhat, "share of the gradient kept from the buffer", 0, 1));
  add(plain(PLIMSOLL_FIELD(training.nesterov), kWhat,
            "look ahead along the buffer; takes momentum, no dampening"));
  add(number(PLIMSOLL_FIELD(training.weight_decay), kWhat,
             "adamw: decoupled; sgd: added to the gradient, and 0 unless given", 0, 1e3));
  add(plain(PLIMSOLL_FIELD(training.weight_decay_scope), kWhat,
            "matrices: no biases, no norms; all: every parameter", {"matrices", "all"}));
  add(plain(PLIMSOLL_FIELD(training.param_groups), kWhat,
            "parameters with hyper-parameters of their own, by patterns of names; the first match wins"));
  add(plain(PLIMSOLL_FIELD(training.freeze), kWhat,
            "parameters that are not trained, by patterns such as \"model.layers.[0-3].*\""));
  add(plain(PLIMSOLL_FIELD(training.unfreeze), kWhat, "of those, parameters that are trained all the same"));
  add(number(PLIMSOLL_FIELD(training.max_grad_norm), kWhat,
             "clip the gradient to this norm; 0 or null: no clipping", 0, 1e12));
  add(number(PLIMSOLL_FIELD(training.seed), kWhat, "seed of weights, order and every random op", 0, 0x1p53));
  add(number(PLIMSOLL_FIELD(training.logging_steps), kHow, "report every so many steps", 1, kMaxCount));
  add(plain(PLIMSOLL_FIELD(training.eval_strategy), kHow,
            "no: not after the last step either; steps: without eval_steps as often as logging_steps",
            {"auto", "no", "steps"}));
  add(number(PLIMSOLL_FIELD(training.eval_steps), kHow,
             "evaluate every so many steps and after the last; 0: only then", 0, kMaxCount));
  add(planned("training.load_best_model_at_end", kWhat, "final/ is the model of the best evaluation",
              "checkpoints are kept by output.save_total_limit, final/ is the last", {"false"}));
  add(planned("training.metric_for_best_model", kWhat, "what makes an evaluation the best", "leave it out"));
  add(planned("training.early_stopping_patience", kWhat, "evaluations to wait for progress", "leave it out"));
  add(planned("training.report_to", kHow, "tensorboard: event files beside the run",
              "train --json writes each step as JSON", {"none", "[]"}));
  add(planned("training.logging_dir", kHow, "folder of the event files", "leave it out"));
  add(planned("training.run_name", kHow, "the run's name in the event files", "name it by output.dir"));
  add(planned("training.adafactor", kWhat, "settings of optimizer adafactor", "leave it out"));
  add(planned("training.muon", kWhat, "settings of optimizer muon", "leave it out"));
  needs_of_schedule_and_rule(list);
}

void add_memory_and_adapters(std::vector<Setting>& list) {
  const auto add = [&](Setting setting) { list.push_back(std::move(setting)); };
  add(plain(PLIMSOLL_FIELD(memory.budget), kHow,
            "most memory of the process (CPU) or the device: auto, 6GiB, 80%"));
  add(plain(PLIMSOLL_FIELD(memory.device_budget), kHow, "bound of the device's pool alone"));
  add(plain(PLIMSOLL_FIELD(memory.host_budget), kHow, "bound of the host's pool alone"));
  add(plain(PLIMSOLL_FIELD(memory.recompute), kHow, "what is computed again in backward instead of kept",
            {"auto", "none", "full", "attention", "mlp", "selective"}));
  add(plain(PLIMSOLL_FIELD(memory.offload), kHow,
            "what lies elsewhere than on the device: {activations: host, optimizer: disk}",
            {"auto", "none"}));
  add(number(PLIMSOLL_FIELD(lora.r), kWhat, "rank of the adapters", 1, 65536));
  add(above(PLIMSOLL_FIELD(lora.lora_alpha), kWhat, "adapters are scaled by lora_alpha / r", 0, 1e6));
  add(number(PLIMSOLL_FIELD(lora.lora_dropout), kWhat, "dropout before an adapter", 0, 0.999));
  add(plain(PLIMSOLL_FIELD(lora.target_modules), kWhat,
            "names of the linears that get one, such as [q_proj, v_proj]"));
  add(plain(PLIMSOLL_FIELD(lora.adapter), kWhat, "go on with the adapter of this directory"));
  add(plain(PLIMSOLL_FIELD(quantization.load_in_4bit), kWhat, "keep the frozen weights in 4 bits"));
  add(plain(PLIMSOLL_FIELD(quantization.bnb_4bit_quant_type), kWhat, "code of the 4 bits", {"nf4", "fp4"}));
  add(plain(PLIMSOLL_FIELD(quantization.bnb_4bit_use_double_quant), kWhat,
            "quantise the block scales as well"));
  takes_only(list, "memory.recompute", {"auto", "none"});
  takes_only(list, "memory.offload", {"auto", "none"});
  add(planned("memory.offload_dir", kHow, "folder of what is offloaded to disk", "leave it out"));
  add(planned("memory.disk_budget", kHow, "bound of what is offloaded to disk", "leave it out"));
  add(planned("memory.optimizer_in_backward", kHow, "update each parameter as its gradient is ready",
              "leave it out", {"auto", "false"}));
  not_yet(list, {"lora."}, "set lora=null: all parameters are trained");
  not_yet(list, {"quantization."}, "set quantization=null");
}

void add_machine_and_output(std::vector<Setting>& list) {
  const auto add = [&](Setting setting) { list.push_back(std::move(setting)); };
  add(plain(PLIMSOLL_FIELD(runtime.device), kHow,
            "what computes; discrete: as if on a card of its own; planned: cuda, cuda:1"));
  add(plain(PLIMSOLL_FIELD(runtime.discrete.memory), kHow,
            "what the device has; auto: as much as the process is given"));
  add(plain(PLIMSOLL_FIELD(runtime.discrete.copy_bandwidth), kHow,
            "of copies, in each direction; null: memory speed"));
  add(number(PLIMSOLL_FIELD(runtime.discrete.seed), kHow,
             "of what delays, splits and starves the queues; null: nothing does", 0, 0x1p53));
  add(plain(PLIMSOLL_FIELD(runtime.discrete.check), kHow, "device memory faults when the host touches it"));
  add(plain(PLIMSOLL_FIELD(runtime.profile), kHow,
            "auto: this machine; planned: a device profile to plan for, by name or file"));
  add(number(PLIMSOLL_FIELD(runtime.threads), kHow, "CPU threads", 1, 4096, "auto"));
  add(plain(PLIMSOLL_FIELD(output.dir), kHow, "folder of checkpoints and the final model"));
  add(plain(PLIMSOLL_FIELD(output.save_strategy), kHow, "steps: without save_steps every 500",
            {"auto", "no", "steps"}));
  add(number(PLIMSOLL_FIELD(output.save_steps), kHow,
             "checkpoint every so many steps; 0: only where a signal stops the run", 0, kMaxCount));
  add(number(PLIMSOLL_FIELD(output.save_total_limit), kHow, "checkpoints to keep", 1, 1e6));
  add(planned("output.dtype", kHow, "what the final model is stored in", "it is stored as it was trained",
              {"auto"}));
  add(planned("output.max_shard_size", kHow, "the final model in files of at most this", "leave it out"));
  add(plain(PLIMSOLL_FIELD(debug.dump_dir), kHow, "write step-%06d.safetensors of every step here"));
  add(plain(PLIMSOLL_FIELD(debug.dump), kHow, "what a dump holds",
            {"loss", "gradients", "logits", "parameters"}));
  add(plain(PLIMSOLL_FIELD(debug.poison), kHow, "fill freed memory with signalling NaNs"));
  add(plain(PLIMSOLL_FIELD(debug.plan), kHow, "arena: packed; separate: one buffer each",
            {"arena", "separate"}));
  add(planned("debug.verify_steps", kHow, "steps to hold against the interpreter", "leave it out", {"0"}));
  takes_only(list, "runtime.device", {"cpu", "discrete"});
  only_with(list, {"runtime.discrete."},
            {.path = "runtime.device", .values = {"discrete"}, .is_noted = true});
  takes_only(list, "runtime.profile", {"auto"});
  only_with(list, {"debug.dump"}, {.path = "debug.dump_dir", .is_noted = true});
}

}  // namespace

const std::vector<Setting>& settings() {
  static const std::vector<Setting> list = [] {
    std::vector<Setting> all;
    add_model_and_data(all);
    add_training(all);
    add_schedule_and_rule(all);
    add_memory_and_adapters(all);
    add_machine_and_output(all);
    return all;
  }();
  return list;
}

const Setting* find_setting(std::string_view path) {
  const auto& all = settings();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Setting& s) { return s.path == path; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace plimsoll
