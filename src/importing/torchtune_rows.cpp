// torchtune's recipe configurations (0.6).
#include "importing/dialects.h"

namespace plimsoll::importing {
namespace {

constexpr std::string_view kRanks =
    "ranks are data parallel; distributed.mode=zero1, zero2 or zero3 divides the training state among them";
constexpr std::string_view kMemory = "the planner decides it within memory.budget; the result is the same";

constexpr Row kTorchtuneRows[] = {
    {"output_dir", "output.dir"},
    {"batch_size", "training.micro_batch_size", Rule::kLater},
    {"gradient_accumulation_steps", "training.global_batch_size", Rule::kLater},
    {"epochs", "training.num_epochs", Rule::kLater},
    {"max_steps_per_epoch", "training.max_steps", Rule::kLater},
    {"seed", "training.seed"},
    {"shuffle", "data.shuffle"},
    {"clip_grad_norm", "training.max_grad_norm", Rule::kNullToo},
    {"log_every_n_steps", "training.logging_steps"},
    {"save_every_n_steps", "output.save_steps"},
    {"keep_last_n_checkpoints", "output.save_total_limit"},
    {"dtype", "training.precision", Rule::kLater},
    // The model: its architecture is read from the folder of the weights.
    {"checkpointer.checkpoint_dir", "model.path"},
    {"checkpointer.*", "", Rule::kHarmless, "*", "the folder's config.json and safetensors decide it"},
    {"resume_from_checkpoint", "", Rule::kHarmless, "*", "--resume says it"},
    {"save_adapter_weights_only", "", Rule::kHarmless, "*", "everything that was trained is saved"},
    {"model._component_", "", Rule::kLater},
    {"model.lora_rank", "lora.r"},
    {"model.lora_alpha", "lora.lora_alpha"},
    {"model.lora_dropout", "lora.lora_dropout"},
    {"model.lora_attn_modules", "lora.target_modules", Rule::kLater},
    {"model.apply_lora_to_mlp", "lora.target_modules", Rule::kLater},
    {"model.apply_lora_to_output", "lora.target_modules", Rule::kLater},
    {"model.quantize_base", "quantization.load_in_4bit"},
    {"model.use_dora", "lora.use_dora"},
    {"model.*", "", Rule::kNoEqual, "", "the model is the one of config.json; set model.overrides"},
    {"tokenizer.max_seq_len", "data.sequence_length", Rule::kLater},
    {"tokenizer.prompt_template", "data.chat_template", Rule::kNoEqual, "",
     "conversations are rendered by the model's chat template; set data.chat_template"},
    {"tokenizer.*", "", Rule::kHarmless, "*", "tokenizer.json of the model's folder is read"},
    // Data.
    {"dataset._component_", "data.train", Rule::kLater},
    {"dataset.source", "data.train", Rule::kLater},
    {"dataset.data_files", "data.train", Rule::kLater},
    {"dataset.packed", "data.packing", Rule::kWords, "true=best_fit|false=pad"},
    {"dataset.train_on_input", "data.loss", Rule::kLater},
    {"dataset.column", "data.text_key", Rule::kLater},
    {"dataset.max_seq_len", "data.sequence_length"},
    {"dataset.add_eos", "data.append_eos"},
    {"dataset.split", "", Rule::kHarmless, "train", "all of data.train is trained on",
     "data.train is trained on: give that share of it as a file"},
    {"dataset.new_system_prompt", "", Rule::kNoEqual, "", "write the system prompt into the data"},
    {"dataset.filter_fn", "", Rule::kNoEqual, "", "filter the data itself"},
    {"dataset.conversation_column", "", Rule::kHarmless, "conversations|messages", kFields, kFields},
    {"dataset.conversation_style", "", Rule::kHarmless, "sharegpt|openai", kFields, kFields},
    {"dataset.column_map.*", "", Rule::kNoEqual, "", kFields},
    {"dataset.*", "", Rule::kNoEqual, "", "give the data as docs/data.md says"},
    {"dataset[].*", "data.train", Rule::kNoEqual, "",
     "give the data as docs/data.md says, as a list in data.train"},
    {"dataset_val.*", "data.eval", Rule::kNoEqual, "", "set data.eval"},
    {"run_val_every_n_steps", "training.eval_steps"},
    {"batch_size_val", "", Rule::kHarmless, "*", "evaluation is planned here"},
    {"max_validation_batches", "", Rule::kNoEqual, "", "all of data.eval is evaluated on"},
    {"collate_fn", "", Rule::kHarmless, "*", "padding is no target"},
    // The rule.
    {"optimizer._component_", "training.optimizer", Rule::kWords,
     "torch.optim.adamw=adamw|torch.optim.adam=adam|torch.optim.sgd=sgd|torchao.optim.adamw8bit=adamw_8bit,!"
     "adamw|"
     "bitsandbytes.optim.adamw=adamw|bitsandbytes.optim.pagedadamw=adamw|"
     "bitsandbytes.optim.pagedadamw32bit=adamw|bitsandbytes.optim.adamw8bit=adamw_8bit,!adamw|"
     "bitsandbytes.optim.pagedadamw8bit=adamw_8bit,!adamw|torchao.prototype.low_bit_optim.adamw8bit=adamw_"
     "8bit,!adamw|"
     "torchao.prototype.low_bit_optim.cpuoffloadoptimizer=!adamw|torchao.optim.cpuoffloadoptimizer=!adamw|"
     "torch.optim.adafactor=!adamw|torch.optim.muon=muon,!adamw|bitsandbytes.optim.lion=lion,!adamw"},
    {"optimizer.lr", "training.learning_rate"},
    {"optimizer.weight_decay", "training.weight_decay", Rule::kLater},
    {"optimizer.betas", "training.adam_beta1", Rule::kLater},
    {"optimizer.eps", "training.adam_epsilon"},
    {"optimizer.momentum", "training.momentum"},
    {"optimizer.dampening", "training.dampening"},
    {"optimizer.nesterov", "training.nesterov"},
    {"optimizer.fused", "", Rule::kHarmless, "*", "it chooses kernels"},
    {"optimizer.foreach", "", Rule::kHarmless, "*", "it chooses kernels"},
    {"optimizer.amsgrad", "", Rule::kNoEqual, "", "the second moment is not kept at its largest"},
    {"optimizer.maximize", "", Rule::kNoEqual, "", "the loss is minimised"},
    {"optimizer_in_bwd", "", Rule::kHarmless, "*", kMemory},
    {"lr_scheduler._component_", "training.lr_scheduler", Rule::kWords,
     "torchtune.training.lr_schedulers.get_cosine_schedule_with_warmup=cosine|"
     "torchtune.modules.get_cosine_schedule_with_warmup=cosine|"
     "torchtune.training.get_cosine_schedule_with_warmup=cosine"},
    {"lr_scheduler.num_warmup_steps", "training.warmup_steps"},
    {"lr_scheduler.num_cycles", "training.lr_scheduler_kwargs.num_cycles"},
    {"loss._component_", "", Rule::kHarmless,
     "torchtune.modules.loss.cewithchunkedoutputloss|torch.nn.crossentropyloss|"
     "torchtune.modules.loss.linearcrossentropyloss|torchtune.modules.loss.linearcrossentropy",
     "it is the plain cross-entropy", "the loss is the plain cross-entropy"},
    {"loss.ignore_index", "", Rule::kHarmless, "-100", "masked tokens are no targets",
     "a token is masked by data.loss, not by its id"},
    {"loss.*", "", Rule::kHarmless, "*", "it is how the loss is computed in pieces"},
    // The machine.
    {"device", "", Rule::kHarmless, "*", "runtime.device names what computes"},
    {"compile", "", Rule::kHarmless, "*", "it chooses kernels"},
    {"compile.*", "", Rule::kHarmless, "*", "it chooses kernels"},
    {"enable_activation_checkpointing", "", Rule::kHarmless, "*", kMemory},
    {"enable_activation_offloading", "", Rule::kHarmless, "*", kMemory},
    {"activation_offloading_use_streams", "", Rule::kHarmless, "*", kMemory},
    {"ac_mode", "", Rule::kHarmless, "*", kMemory},
    {"ac_option", "", Rule::kHarmless, "*", kMemory},
    {"fsdp_cpu_offload", "", Rule::kHarmless, "*", kRanks},
    {"fsdp_reshard_after_forward", "", Rule::kHarmless, "*", kRanks},
    {"custom_sharded_layers", "", Rule::kHarmless, "*", kRanks},
    {"tensor_parallel_dim", "", Rule::kHarmless, "*", kRanks},
    {"tensor_parallel_plan.*", "", Rule::kHarmless, "*", kRanks},
    {"data_parallel_shard_dim", "", Rule::kHarmless, "*", kRanks},
    {"data_parallel_replicate_dim", "", Rule::kHarmless, "*", kRanks},
    {"enable_async_checkpointing", "", Rule::kHarmless, "*", "checkpoints are written during the next step"},
    {"cudnn_deterministic_mode", "", Rule::kHarmless, "*", "every run is deterministic"},
    {"metric_logger.*", "", Rule::kHarmless, "*", "train --json writes each step"},
    {"log_peak_memory_stats", "", Rule::kHarmless, "*", "memory is planned and measured in each run"},
    {"log_level", "", Rule::kHarmless, "*", "Plimsoll decides what it prints"},
    {"profiler.*", "", Rule::kHarmless, "*", "it measures and changes nothing"},
    {"fp8_recipe_name", "training.precision", Rule::kNoEqual, "",
     "set training.precision: fp8 and training.fp8.recipe by hand"},
    {"enable_fp8_training", "training.precision", Rule::kNoEqual, "",
     "set training.precision: fp8 and training.fp8.recipe by hand"},
};

}  // namespace

std::span<const Row> torchtune_rows() { return kTorchtuneRows; }

}  // namespace plimsoll::importing
