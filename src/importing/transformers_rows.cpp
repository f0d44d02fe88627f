// transformers' TrainingArguments (5.23, and the names of 4.x), with what its example scripts for language
// models take beside them. What is harmless in a run file too stands in settings/harmless_keys.cpp.
#include "importing/dialects.h"

namespace plimsoll::importing {
namespace {

constexpr Row kTransformersRows[] = {
    {"output_dir", "output.dir"},
    {"learning_rate", "training.learning_rate"},
    {"weight_decay", "training.weight_decay"},
    {"adam_beta1", "training.adam_beta1"},
    {"adam_beta2", "training.adam_beta2"},
    {"adam_epsilon", "training.adam_epsilon"},
    {"max_grad_norm", "training.max_grad_norm", Rule::kNullToo},
    {"seed", "training.seed"},
    {"optim", "training.optimizer", Rule::kWords,
     "adamw_torch=adamw|adamw_torch_fused=adamw|adamw_hf=adamw|adamw=adamw|adamw_torch_xla=adamw|"
     "adamw_torch_npu_fused=adamw|adamw_apex_fused=adamw|adamw_anyprecision=!adamw|"
     "paged_adamw_32bit=adamw|paged_adamw=adamw|adamw_bnb_8bit=adamw_8bit,!adamw|"
     "adamw_8bit=adamw_8bit,!adamw|paged_adamw_8bit=adamw_8bit,!adamw|adamw_torch_8bit=adamw_8bit,!adamw|"
     "adamw_torch_4bit=!adamw|ademamix=!adamw|ademamix_8bit=!adamw|paged_ademamix_32bit=!adamw|"
     "paged_ademamix_8bit=!adamw|adafactor=adafactor,!adamw|lion=lion,!adamw|lion_32bit=lion,!adamw|"
     "lion_8bit=!adamw|paged_lion_32bit=lion,!adamw|paged_lion_8bit=!adamw|muon=muon,!adamw|sgd=sgd|"
     "adagrad=!adamw|rmsprop=!adamw|rmsprop_bnb=!adamw|rmsprop_bnb_8bit=!adamw|rmsprop_bnb_32bit=!adamw|"
     "galore_adamw=!adamw|galore_adamw_8bit=!adamw|galore_adafactor=!adamw|galore_adamw_layerwise=!adamw|"
     "galore_adamw_8bit_layerwise=!adamw|galore_adafactor_layerwise=!adamw|lomo=!adamw|adalomo=!adamw|"
     "grokadamw=!adamw|schedule_free_radam=!adamw|schedule_free_adamw=!adamw|schedule_free_sgd=!sgd|"
     "apollo_adamw=!adamw|apollo_adamw_layerwise=!adamw|stable_adamw=!adamw|optimi_adamw=!adamw|"
     "ao_adamw_8bit=!adamw_8bit|ao_adamw_4bit=!adamw|ao_adamw_fp8=!adamw|adopt_adamw=!adamw|came_pytorch=!"
     "adamw|"
     "dion=!muon|flash_adamw=!adamw|flash_adam=!adam|flash_sgd=!sgd|flash_sgdw=!sgd|flash_lion=!lion|"
     "lion_pytorch=lion"},
    {"lr_scheduler_type", "training.lr_scheduler", Rule::kWords,
     "linear|cosine|cosine_with_restarts|polynomial|constant|constant_with_warmup|warmup_stable_decay|"
     "one_cycle|inverse_sqrt=!linear|reduce_lr_on_plateau=!constant|cosine_with_min_lr=!cosine|"
     "cosine_warmup_with_min_lr=!cosine|greedy=!constant|rex=!cosine|log_sweep=!linear|quadratic=!linear"},
    {"lr_scheduler_kwargs", "", Rule::kHarmless, "null|{}|\"\"|[]", "it is empty"},
    {"lr_scheduler_kwargs.num_cycles", "training.lr_scheduler_kwargs.num_cycles"},
    {"lr_scheduler_kwargs.power", "training.lr_scheduler_kwargs.power"},
    {"lr_scheduler_kwargs.lr_end", "training.lr_scheduler_kwargs.lr_end"},
    {"lr_scheduler_kwargs.min_lr_ratio", "training.lr_scheduler_kwargs.min_lr_ratio"},
    {"lr_scheduler_kwargs.num_decay_steps", "training.lr_scheduler_kwargs.num_decay_steps"},
    {"lr_scheduler_kwargs.decay_type", "training.lr_scheduler_kwargs.decay_type"},
    {"lr_scheduler_kwargs.warmup_type", "training.lr_scheduler_kwargs.warmup_type"},
    {"lr_scheduler_kwargs.num_stable_steps", "", Rule::kNoEqual, "",
     "what decay and warm-up leave is stable"},
    {"lr_scheduler_kwargs.min_lr", "", Rule::kNoEqual, "",
     "the rate falls to 0 at the end; training.lr_scheduler: wsd keeps a share (min_lr_ratio), given "
     "num_decay_steps"},
    {"lr_scheduler_kwargs.min_lr_rate", "", Rule::kNoEqual, "",
     "the rate falls to 0 at the end; training.lr_scheduler: wsd keeps a share (min_lr_ratio), given "
     "num_decay_steps"},
    {"lr_scheduler_kwargs.timescale", "", Rule::kNoEqual, "", "its schedule is not supported"},
    // Computed together: settle_trainer.
    {"per_device_train_batch_size", "training.micro_batch_size", Rule::kLater},
    {"per_gpu_train_batch_size", "training.micro_batch_size", Rule::kLater},
    {"gradient_accumulation_steps", "training.global_batch_size", Rule::kLater},
    {"max_steps", "training.max_steps", Rule::kLater},
    {"num_train_epochs", "training.num_epochs", Rule::kLater},
    {"warmup_steps", "training.warmup_steps", Rule::kLater},
    {"warmup_ratio", "training.warmup_ratio", Rule::kLater},
    {"bf16", "training.precision", Rule::kLater},
    {"fp16", "training.precision", Rule::kLater},
    {"tf32", "training.precision", Rule::kLater},
    {"dtype", "training.state.weights", Rule::kLater},
    {"torch_dtype", "training.state.weights", Rule::kLater},
    {"save_strategy", "output.save_strategy", Rule::kLater},
    {"save_steps", "output.save_steps", Rule::kLater},
    {"eval_strategy", "training.eval_strategy", Rule::kLater},
    {"evaluation_strategy", "training.eval_strategy", Rule::kLater},
    {"eval_steps", "training.eval_steps", Rule::kLater},
    {"logging_steps", "training.logging_steps", Rule::kLater},
    {"gradient_checkpointing", "memory.recompute", Rule::kLater},
    {"activation_checkpointing", "memory.recompute", Rule::kLater},
    {"save_total_limit", "output.save_total_limit"},
    {"adafactor", "training.optimizer", Rule::kWords, "false=|true=adafactor,!adamw"},
    {"torch_empty_cache_steps", "", Rule::kHarmless, "*", "no memory is cached here"},
    {"use_legacy_prediction_loop", "", Rule::kHarmless, "*", "evaluation is planned here"},
    {"load_best_model_at_end", "training.load_best_model_at_end", Rule::kIfThere, "",
     "final/ is the last model, not the best"},
    {"metric_for_best_model", "training.metric_for_best_model", Rule::kIfThere, "",
     "final/ is the last model"},
    {"greater_is_better", "training.greater_is_better", Rule::kIfThere, "", "final/ is the last model"},
    {"dataloader_num_workers", "data.num_workers", Rule::kHarmless, "*", "threads read ahead as needed"},
    {"dataloader_prefetch_factor", "data.prefetch_factor"},
    {"dataloader_drop_last", "", Rule::kHarmless, "null", "it has no effect",
     "batches run on across epochs: where the data is no multiple of the batch, an epoch's last step "
     "differs"},
    {"data_seed", "", Rule::kNoEqual, "", "training.seed draws the order of the data"},
    {"group_by_length", "", Rule::kNoEqual, "",
     "sequences come in a random order; data.packing: best_fit or data.buckets save padding"},
    {"train_sampling_strategy", "data.shuffle", Rule::kWords, "random=true|sequential=false|group_by_length=",
     "", "sequences come in a random order; data.packing: best_fit or data.buckets save padding"},
    {"label_smoothing_factor", "", Rule::kNoEqual, "", "the loss is the plain cross-entropy"},
    {"neftune_noise_alpha", "", Rule::kNoEqual, "", "no noise is added to embeddings"},
    {"push_to_hub", "", Rule::kHarmless, "false|null", "nothing is uploaded",
     "nothing is uploaded: upload output.dir/final with hf upload; training is the same"},
    {"report_to", "training.report_to", Rule::kLater},
    {"logging_first_step", "training.logging_first_step"},
    {"logging_nan_inf_filter", "training.logging_nan_inf_filter"},
    {"logging_dir", "training.logging_dir"},
    {"run_name", "", Rule::kHarmless, "*", "it is of report_to; training.run_name says it here"},
    {"fsdp", "", Rule::kHarmless, "*",
     "distributed.mode=zero1, zero2 or zero3 divides the training state among ranks"},
    {"deepspeed", "", Rule::kHarmless, "null|\"\"|{}", "there is none",
     "its settings were not given: import both files at once"},
    {"parallelism_config", "", Rule::kHarmless, "*", "ranks are data parallel (plimsoll launch)"},
    {"average_tokens_across_devices", "", Rule::kHarmless, "*",
     "the loss is the mean over all loss tokens of a step"},
    {"trust_remote_code", "", Rule::kHarmless, "*", "no model code is run"},
    {"resume_from_checkpoint", "", Rule::kHarmless, "null|true|false|\"\"", "--resume says it",
     "run: plimsoll train RUN.yaml --resume DIR, of a checkpoint of Plimsoll's"},
    // The example scripts.
    {"model_name_or_path", "model.path"},
    {"train_file", "data.train"},
    {"validation_file", "data.eval"},
    {"block_size", "data.sequence_length", Rule::kLater},
    {"tokenizer_name", "data.tokenizer"},
    {"config_name", "", Rule::kNoEqual, "",
     "model.path is read; set model.path to it, and model.init: random"},
    {"max_train_samples", "data.max_train_samples"},
    {"max_eval_samples", "data.max_eval_samples"},
    {"validation_split_percentage", "data.eval_fraction", Rule::kLater},
    {"dataset_name", "data.train", Rule::kLater},
    {"dataset_config_name", "", Rule::kLater},
    {"overwrite_cache", "", Rule::kHarmless, "*", "the cache of tokens follows the files"},
    {"keep_linebreaks", "", Rule::kHarmless, "true", "line breaks stay", "line breaks stay"},
    {"use_fast_tokenizer", "", Rule::kHarmless, "*", "tokenizer.json is read"},
    {"low_cpu_mem_usage", "", Rule::kHarmless, "*", "weights are read where they belong"},
    {"cache_dir", "", Rule::kHarmless, "*", "models are read from HF_HOME's cache"},
    {"token", "", Rule::kHarmless, "*", "nothing is downloaded"},
    {"use_auth_token", "", Rule::kHarmless, "*", "nothing is downloaded"},
    {"streaming", "", Rule::kHarmless, "*", "data is tokenized once, then read from disk"},
};

}  // namespace

std::span<const Row> transformers_rows() { return kTransformersRows; }

}  // namespace plimsoll::importing
