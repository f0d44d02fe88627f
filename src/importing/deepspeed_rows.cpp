// DeepSpeed's configuration (0.19): the file that is given to its engine or to transformers' Trainer.
#include "importing/dialects.h"

namespace plimsoll::importing {
namespace {

constexpr std::string_view kZero =
    "distributed.mode=zero1, zero2 or zero3 divides the training state among ranks; memory.budget bounds "
    "each rank";
constexpr std::string_view kLog = "Plimsoll decides what it prints and logs";
constexpr std::string_view kMachine = "it is how several processes and their disks work together";

constexpr Row kDeepspeedRows[] = {
    {"train_batch_size", "training.global_batch_size", Rule::kLater},
    {"train_micro_batch_size_per_gpu", "training.micro_batch_size", Rule::kLater},
    {"gradient_accumulation_steps", "training.global_batch_size", Rule::kLater},
    {"gradient_clipping", "training.max_grad_norm"},
    {"seed", "training.seed"},
    {"steps_per_print", "training.logging_steps", Rule::kHarmless, "*", kLog},
    {"zero_optimization", "", Rule::kHarmless, "*", kZero},
    {"zero_optimization.offload_optimizer.device", "memory.offload", Rule::kLater},
    {"zero_optimization.offload_param.device", "memory.offload", Rule::kLater},
    {"zero_optimization.offload_optimizer.nvme_path", "memory.offload_dir", Rule::kLater},
    {"zero_optimization.offload_param.nvme_path", "memory.offload_dir", Rule::kLater},
    {"zero_optimization.*", "", Rule::kHarmless, "*", kZero},
    {"zero_allow_untested_optimizer", "", Rule::kHarmless, "*", kZero},
    {"zero_force_ds_cpu_optimizer", "", Rule::kHarmless, "*", kZero},
    // The optimizer: settle_deepspeed has its scope and its decay.
    {"optimizer.type", "training.optimizer", Rule::kLater},
    {"optimizer.params.lr", "training.learning_rate"},
    {"optimizer.params.betas", "training.adam_beta1", Rule::kLater},
    {"optimizer.params.eps", "training.adam_epsilon"},
    {"optimizer.params.weight_decay", "training.weight_decay"},
    {"optimizer.params.momentum", "training.momentum"},
    {"optimizer.params.nesterov", "training.nesterov"},
    {"optimizer.params.dampening", "training.dampening"},
    {"optimizer.params.adam_w_mode", "training.optimizer", Rule::kLater},
    {"optimizer.params.torch_adam", "", Rule::kHarmless, "*", "it chooses kernels"},
    {"optimizer.params.fused", "", Rule::kHarmless, "*", "it chooses kernels"},
    {"optimizer.params.bias_correction", "", Rule::kHarmless, "true", "moments are corrected for their start",
     "moments are corrected for their start"},
    {"optimizer.params.amsgrad", "", Rule::kNoEqual, "", "the second moment is not kept at its largest"},
    {"optimizer.params.*", "", Rule::kNoEqual, "", "it belongs to an optimizer that is not supported"},
    {"optimizer.legacy_fusion", "", Rule::kHarmless, "*", "it chooses kernels"},
    // The schedule.
    {"scheduler.type", "training.lr_scheduler", Rule::kLater},
    {"scheduler.params.warmup_type", "training.lr_scheduler", Rule::kLater},
    {"scheduler.params.warmup_max_lr", "training.learning_rate", Rule::kLater},
    {"scheduler.params.warmup_min_lr", "", Rule::kNoEqual, "", "a warm-up begins at 0"},
    {"scheduler.params.warmup_min_ratio", "", Rule::kNoEqual, "", "a warm-up begins at 0"},
    {"scheduler.params.cos_min_ratio", "", Rule::kNoEqual, "",
     "the rate falls to 0 at the end; training.lr_scheduler: wsd keeps a share (min_lr_ratio), given "
     "num_decay_steps"},
    {"scheduler.params.warmup_num_steps", "training.warmup_steps", Rule::kLater},
    {"scheduler.params.total_num_steps", "training.max_steps", Rule::kLater},
    {"scheduler.params.*", "", Rule::kNoEqual, "", "it belongs to a schedule that is not supported"},
    // Precision.
    {"bf16.enabled", "training.precision", Rule::kLater},
    {"bfloat16.enabled", "training.precision", Rule::kLater},
    {"fp16.enabled", "training.precision", Rule::kLater},
    {"fp16.loss_scale", "training.loss_scale.fixed", Rule::kLater},
    {"fp16.initial_scale_power", "training.loss_scale.init_scale", Rule::kLater},
    {"fp16.loss_scale_window", "training.loss_scale.growth_interval"},
    {"fp16.min_loss_scale", "training.loss_scale.min_scale"},
    {"fp16.hysteresis", "", Rule::kHarmless, "1", "the scale falls at the first overflow",
     "the scale falls at the first overflow, not at the n-th"},
    {"fp16.consecutive_hysteresis", "", Rule::kHarmless, "*", "the scale falls at the first overflow"},
    {"fp16.auto_cast", "", Rule::kHarmless, "*", "tokens are integers: nothing has to be cast"},
    {"fp16.fp16_master_weights_and_grads", "", Rule::kNoEqual, "", "masters and accumulators are fp32"},
    {"fp16.*", "", Rule::kNoEqual, "", "not available here"},
    {"bf16.immediate_grad_update", "", Rule::kHarmless, "*", "it is when gradients are added"},
    {"bf16.check_grad_overflow", "", Rule::kHarmless, "*", "a loss that is not finite stops the run"},
    {"bf16.bf16_master_weights_and_grads", "", Rule::kNoEqual, "", "masters and accumulators are fp32"},
    {"bf16.bf16_optimizer_states", "", Rule::kNoEqual, "",
     "moments are fp32; set training.state.moments: bf16"},
    {"data_types.grad_accum_dtype", "", Rule::kHarmless, "fp32|null", "accumulators are fp32",
     "accumulators are fp32"},
    {"torch_autocast.enabled", "training.precision", Rule::kNoEqual, "", "set training.precision"},
    {"torch_autocast.*", "", Rule::kHarmless, "*", "training.precision decides it"},
    {"amp.enabled", "training.precision", Rule::kNoEqual, "", "set training.precision"},
    {"amp.*", "", Rule::kHarmless, "*", "training.precision decides it"},
    // What changes the model, the loss or the data.
    {"sparse_attention.*", "", Rule::kNoEqual, "", "attention sees the whole sequence"},
    {"compression_training.*", "", Rule::kNoEqual, "",
     "weights are neither pruned nor quantized in training"},
    {"curriculum_learning.enabled", "", Rule::kNoEqual, "", "sequences have their length from the start"},
    {"curriculum_learning.*", "", Rule::kHarmless, "*", "curriculum_learning.enabled is reported instead"},
    {"data_efficiency.enabled", "", Rule::kNoEqual, "", "all data and all layers are trained on"},
    {"data_efficiency.*", "", Rule::kHarmless, "*", "data_efficiency.enabled is reported instead"},
    {"progressive_layer_drop.enabled", "", Rule::kNoEqual, "", "no layer is dropped"},
    {"progressive_layer_drop.*", "", Rule::kHarmless, "*",
     "progressive_layer_drop.enabled is reported instead"},
    {"eigenvalue.*", "", Rule::kHarmless, "*", "it is of compression_training"},
    {"quantize_training.*", "", Rule::kNoEqual, "", "weights are not quantized in training"},
    {"sparse_gradients", "", Rule::kHarmless, "*", "it is how gradients travel"},
    // Processes, logging, measuring.
    {"prescale_gradients", "", Rule::kHarmless, "*", kMachine},
    {"gradient_predivide_factor", "", Rule::kHarmless, "*", kMachine},
    {"communication_data_type", "", Rule::kHarmless, "*", kMachine},
    {"seq_parallel_communication_data_type", "", Rule::kHarmless, "*", kMachine},
    {"disable_allgather", "", Rule::kHarmless, "*", kMachine},
    {"activation_checkpointing.*", "", Rule::kHarmless, "*", "the planner decides it within memory.budget"},
    {"aio.*", "", Rule::kHarmless, "*", kMachine},
    {"checkpoint.*", "", Rule::kHarmless, "*", kMachine},
    {"elasticity.*", "", Rule::kHarmless, "*", kMachine},
    {"autotuning.*", "", Rule::kHarmless, "*", "plimsoll plan says what fits"},
    {"comms_logger.*", "", Rule::kHarmless, "*", kLog},
    {"flops_profiler.*", "", Rule::kHarmless, "*", "it measures and changes nothing"},
    {"tensorboard.*", "", Rule::kHarmless, "*", kLog},
    {"wandb.*", "", Rule::kHarmless, "*", kLog},
    {"comet.*", "", Rule::kHarmless, "*", kLog},
    {"csv_monitor.*", "", Rule::kHarmless, "*", kLog},
    {"wall_clock_breakdown", "", Rule::kHarmless, "*", kLog},
    {"memory_breakdown", "", Rule::kHarmless, "*", kLog},
    {"dump_state", "", Rule::kHarmless, "*", kLog},
    {"zero_optimization_stage", "", Rule::kHarmless, "*", kZero},
    {"pipeline.*", "", Rule::kHarmless, "*", kMachine},
    {"tensor_parallel.*", "", Rule::kHarmless, "*", kMachine},
    {"hybrid_engine.*", "", Rule::kHarmless, "*", "it is of generation"},
    {"compile.*", "", Rule::kHarmless, "*", "it chooses kernels"},
    {"dataloader_drop_last", "", Rule::kHarmless, "null", "it has no effect",
     "batches run on across epochs: where the data is no multiple of the batch, an epoch's last step "
     "differs"},
    {"use_data_before_expert_parallelism", "", Rule::kHarmless, "*", kMachine},
    {"hostfile", "", Rule::kHarmless, "*", kMachine},
};

}  // namespace

std::span<const Row> deepspeed_rows() { return kDeepspeedRows; }

}  // namespace plimsoll::importing
