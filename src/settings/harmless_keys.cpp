// The table of harmless names, a row each, by what they are about.
#include "settings/harmless_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace plimsoll::settings {
namespace {

constexpr std::string_view kAny = "*";
constexpr std::string_view kOff = "false|null";
constexpr std::string_view kNone = "null|\"\"|[]|{}";

// What the notes and hints below say of several names.
constexpr std::string_view kHub = "nothing is uploaded";
constexpr std::string_view kProcess = "the launcher and distributed.* decide it";
constexpr std::string_view kKernels = "it chooses kernels, and here they are compiled already";
constexpr std::string_view kEvaluation = "evaluation is planned here";
constexpr std::string_view kColumns = "the columns of an example are known by their names";
constexpr std::string_view kLog = "Plimsoll decides what it prints and logs";
constexpr std::string_view kMachine = "runtime.device names what computes";
constexpr std::string_view kCheckpoints = "checkpoints are complete safetensors, as one resumes from";
constexpr std::string_view kMemory = "the planner decides it within memory.budget";
constexpr std::string_view kReading = "threads read ahead, in order, for as long as the run lives";
constexpr std::string_view kDeterminism = "every run is deterministic";
constexpr std::string_view kOldName = "it is of an older version and without effect";

constexpr HarmlessKey kKeys[] = {
    // The hub and trackers.
    {"push_to_hub", kOff, kHub, "leave it out, and upload output.dir/final with: hf upload"},
    {"hub_always_push", kAny, kHub},
    {"hub_model_id", kAny, kHub},
    {"hub_private_repo", kAny, kHub},
    {"hub_revision", kAny, kHub},
    {"hub_strategy", kAny, kHub},
    {"hub_token", kAny, kHub},
    {"push_to_hub_model_id", kAny, kHub},
    {"push_to_hub_organization", kAny, kHub},
    {"push_to_hub_token", kAny, kHub},
    {"project", kAny, "it belongs to a tracker that report_to does not support"},
    {"trackio_space_id", kAny, "it belongs to a tracker that report_to does not support"},
    {"trackio_bucket_id", kAny, "it belongs to a tracker that report_to does not support"},
    {"trackio_static_space_id", kAny, "it belongs to a tracker that report_to does not support"},
    // What a script does.
    {"do_train", "true|false|null", "the command decides it: plimsoll train"},
    {"do_eval", "true|false|null", "data.eval and training.eval_strategy decide it"},
    {"do_predict", kOff, "the command decides it: plimsoll predict",
     "leave it out; plimsoll predict does it"},
    {"overwrite_output_dir", kAny,
     "a finished run is not trained again, and --resume selects the checkpoint"},
    {"resume_from_checkpoint", "true|false|null", "--resume decides it, and its default is auto",
     "leave it out, and run: plimsoll train RUN.yaml --resume DIR"},
    {"ignore_data_skip", kOff, "a resumed run continues where it stopped, at once", "leave it out"},
    {"max_steps", "-1", "num_train_epochs sets the length of the run"},
    // The loader and the columns.
    {"dataloader_pin_memory", kAny, "does nothing on a CPU: the plan has the memory it is read into"},
    {"pin_memory", kAny, "does nothing on a CPU: the plan has the memory it is read into"},
    {"dataloader_persistent_workers", kAny, kReading},
    {"persistent_workers", kAny, kReading},
    {"dataloader_multiprocessing_context", kAny, kReading},
    {"dataloader_in_order", "true|null", kReading, "leave it out: the order is the same each time"},
    {"dataloader_drop_last", kOff, "batches run on across epochs",
     "leave it out: batches run on across epochs, and nothing has to be dropped"},
    {"remove_unused_columns", kAny, kColumns},
    {"label_names", kNone, kColumns, "leave it out, and name the columns as in docs/data.md"},
    {"length_column_name", kAny, "lengths are counted, not read"},
    {"dataset_num_proc", kAny, "runtime.threads sets the threads that tokenize"},
    {"preprocessing_num_workers", kAny, "runtime.threads sets the threads that tokenize"},
    {"group_by_length", kOff, "sequences come in a random order",
     "leave it out; data.packing: best_fit fills sequences, data.buckets shortens them"},
    {"train_sampling_strategy", "random|null", "data.shuffle is true by default",
     "for sequential set data.shuffle=false; data.packing: best_fit or data.buckets save padding"},
    {"data_seed", kNone, "training.seed draws the order", "leave it out: training.seed draws the order"},
    {"dispatch_batches", kAny, kProcess},
    {"split_batches", kAny, kProcess},
    {"accelerator_config", kAny, kProcess},
    // Several processes and devices.
    {"ddp_find_unused_parameters", kAny, kProcess},
    {"ddp_bucket_cap_mb", kAny, kProcess},
    {"ddp_broadcast_buffers", kAny, kProcess},
    {"ddp_static_graph", kAny, kProcess},
    {"ddp_backend", kAny, kProcess},
    {"ddp_timeout", kAny, kProcess},
    {"local_rank", kAny, kProcess},
    {"_n_gpu", kAny, kProcess},
    {"average_tokens_across_devices", kAny, "the loss is the mean over all loss tokens of a step"},
    {"fsdp", kNone, kProcess,
     "leave it out: distributed.mode=zero1, zero2 or zero3 divides the training state among ranks"},
    {"fsdp_config", kAny, kProcess},
    {"fsdp_min_num_params", kAny, kProcess},
    {"fsdp_transformer_layer_cls_to_wrap", kAny, kProcess},
    {"deepspeed", kNone, kProcess, "leave it out, or run: plimsoll import RUN.yaml DEEPSPEED.json"},
    {"parallelism_config", kNone, kProcess, "leave it out: ranks are data parallel (plimsoll launch)"},
    {"sharded_ddp", kNone, kOldName, "leave it out"},
    {"use_cpu", "true|false|null", kMachine},
    {"no_cuda", "true|false|null", kMachine},
    {"use_mps_device", kOff, kMachine, "leave it out: runtime.device names what computes"},
    {"use_ipex", "true|false|null", kKernels},
    {"tpu_num_cores", kNone, kMachine, "leave it out: runtime.device names what computes"},
    {"tpu_metrics_debug", kAny, kOldName},
    {"ray_scope", kAny, "it belongs to a hyper-parameter search"},
    {"mp_parameters", kAny, kOldName},
    {"past_index", "-1|null", kOldName, "leave it out"},
    // Memory and kernels: the result is the same.
    {"auto_find_batch_size", kAny, kMemory},
    {"activation_offloading", kAny, kMemory},
    {"gradient_checkpointing_kwargs", kAny, kMemory},
    {"activation_checkpointing_kwargs", kAny, kMemory},
    {"torch_compile", kAny, kKernels},
    {"torch_compile_backend", kAny, kKernels},
    {"torch_compile_mode", kAny, kKernels},
    {"torchdynamo", kAny, kKernels},
    {"jit_mode_eval", kAny, kKernels},
    {"use_liger_kernel", kAny, kKernels},
    {"liger_kernel_config", kAny, kKernels},
    {"attn_implementation", kAny, kKernels},
    {"use_cache", kAny, "training needs no cache of keys and values"},
    {"full_determinism", kAny, kDeterminism},
    {"fp16_backend", kAny, kOldName},
    {"half_precision_backend", kAny, kOldName},
    {"fp16_opt_level", kAny, kOldName},
    {"bf16_full_eval", kOff, "evaluation computes as training does",
     "leave it out: evaluation computes as training.precision says"},
    {"fp16_full_eval", kOff, "evaluation computes as training does",
     "leave it out: evaluation computes as training.precision says"},
    // What changes the mathematics, switched off.
    {"label_smoothing_factor", "0|null", "it is off", "leave it at 0: the loss is the plain cross-entropy"},
    {"neftune_noise_alpha", "0|null", "it is off", "leave it out: no noise is added to embeddings"},
    {"optim_args", kNone, "it is empty", "leave it out: an optimizer's settings are under training"},
    {"optim_target_modules", kNone, "it is empty",
     "leave it out: the optimizer updates all trained parameters"},
    {"trust_remote_code", kOff, "no model code is run",
     "leave it out: docs/models.md lists the models, and none has code of its own"},
    {"model_revision", "main|null", "it is the default", "download that revision, and give its folder"},
    // Logging, evaluation, checkpoints.
    {"logging_strategy", "steps", "training.logging_steps sets it",
     "leave it out: training.logging_steps sets how often"},
    {"log_level", kAny, kLog},
    {"log_level_replica", kAny, kLog},
    {"log_on_each_node", kAny, kLog},
    {"disable_tqdm", kAny, kLog},
    {"include_num_input_tokens_seen", kAny, "each step reports its tokens"},
    {"include_tokens_per_second", kAny, "each step reports its speed"},
    {"skip_memory_metrics", kAny, "memory is planned and measured in each run"},
    {"debug", "\"\"|[]", kLog},  // with a map it is the section of a run file
    {"per_device_eval_batch_size", kAny, kEvaluation},
    {"eval_accumulation_steps", kAny, kEvaluation},
    {"eval_do_concat_batches", kAny, kEvaluation},
    {"eval_use_gather_object", kAny, kEvaluation},
    {"batch_eval_metrics", kAny, kEvaluation},
    {"prediction_loss_only", kAny, kEvaluation},
    {"include_for_metrics", kAny, kEvaluation},
    {"include_inputs_for_metrics", kAny, kEvaluation},
    {"eval_delay", "0|null", kEvaluation, "leave it out: evaluation begins with training.eval_steps"},
    {"eval_on_start", kOff, kEvaluation, "leave it out; plimsoll eval evaluates the initial weights"},
    {"greater_is_better", "null", "training.metric_for_best_model knows it", "leave it out"},
    {"save_safetensors", "true|null", kCheckpoints, "leave it out: pickles are not written"},
    {"save_only_model", kOff, kCheckpoints, "leave it out: a checkpoint holds all that a resume needs"},
    {"save_on_each_node", kAny, "rank 0 alone saves"},
    {"restore_callback_states_from_checkpoint", kAny, kCheckpoints},
    {"enable_jit_checkpoint", kAny, "a signal saves before it stops the run"},
};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

}  // namespace

std::span<const HarmlessKey> harmless_keys() { return kKeys; }

const HarmlessKey* find_harmless_key(std::string_view name) {
  const auto found =
      std::find_if(std::begin(kKeys), std::end(kKeys), [&](const HarmlessKey& k) { return k.name == name; });
  return found == std::end(kKeys) ? nullptr : found;
}

bool is_one_of_values(std::string_view values, const io::Tree& value) {
  if (values == kAny) return true;
  const bool is_zero =
      (value.kind == io::Tree::Kind::kInteger || value.kind == io::Tree::Kind::kNumber) && value.number == 0;
  const std::string text = is_zero ? "0" : lower(io::to_yaml_flow(value));
  while (!values.empty()) {
    const size_t bar = values.find('|');
    if (values.substr(0, bar) == text) return true;
    values = bar == std::string_view::npos ? std::string_view{} : values.substr(bar + 1);
  }
  return false;
}

Error asks_for_more(const HarmlessKey& key, const io::Tree& value, std::string where) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("{} is {}, which is not supported", key.name, value.describe()), std::move(where),
          std::string(key.hint.empty() ? "leave it out" : key.hint)};
}

std::string harmless_markdown() {
  std::string out =
      "## Names from transformers without effect\n\n"
      "Plimsoll accepts these names at the top of a run file and under `training`. With these values they "
      "have no "
      "effect, and one\n"
      "note names those that a run file has. Any other value is an error with a hint.\n\n"
      "| name | with | why |\n| --- | --- | --- |\n";
  for (const HarmlessKey& key : harmless_keys()) {
    std::string values;
    for (const char c : key.values) values += c == '|' ? std::string("`, `") : std::string(1, c);
    out += fmt::format("| `{}` | {} | {} |\n", key.name,
                       key.values == kAny ? std::string("any value") : "`" + values + "`", key.why);
  }
  return out;
}

}  // namespace plimsoll::settings
