// TRL's SFTConfig (1.16, and older names) and what its command line and scripts take beside it. Rows of
// transformers hold as well.
#include "importing/dialects.h"

namespace plimsoll::importing {
namespace {

constexpr Row kTrlRows[] = {
    {"max_length", "data.sequence_length", Rule::kLater},
    {"max_seq_length", "data.sequence_length", Rule::kLater},
    {"packing", "data.packing", Rule::kLater},
    {"packing_strategy", "data.packing", Rule::kLater},
    {"eval_packing", "", Rule::kLater},
    {"assistant_only_loss", "data.loss", Rule::kLater},
    {"completion_only_loss", "data.loss", Rule::kLater},
    {"dataset_text_field", "data.text_key", Rule::kLater},
    {"dataset_name", "data.train", Rule::kLater},
    {"dataset_config", "", Rule::kLater},
    {"dataset_train_split", "", Rule::kLater},
    {"dataset_test_split", "", Rule::kLater},
    {"dataset_streaming", "", Rule::kHarmless, "*", "data is tokenized once, then read from disk"},
    {"datasets[].path", "data.train", Rule::kLater},
    {"datasets[].data_files", "data.train", Rule::kLater},
    {"datasets[].name", "", Rule::kLater},
    {"datasets[].split", "", Rule::kLater},
    {"datasets[].data_dir", "", Rule::kLater},
    {"datasets[].columns", "", Rule::kHarmless, "*", "the columns of an example are known by their names"},
    {"datasets[].fraction", "data.weights", Rule::kNoEqual, "",
     "set data.weights, one number an entry of data.train"},
    {"test_split_size", "data.eval_fraction"},
    {"chat_template_path", "data.chat_template"},
    {"truncation_mode", "", Rule::kHarmless, "keep_start", "the start is kept",
     "the start of an example is kept, not its end"},
    {"padding_free", "", Rule::kHarmless, "*", "data.packing says what is padded; the targets are the same"},
    {"pad_to_multiple_of", "", Rule::kHarmless, "*", "padding is no target"},
    {"pad_token", "", Rule::kHarmless, "*", "padding is no target"},
    {"eos_token", "", Rule::kNoEqual, "", "the end is the tokenizer's own eos_token"},
    {"shuffle_dataset", "", Rule::kHarmless, "*", "data.shuffle draws the order of an epoch"},
    {"loss_type", "", Rule::kHarmless, "nll|chunked_nll", "it is the plain cross-entropy",
     "the loss is the plain cross-entropy"},
    {"dataset_kwargs", "", Rule::kHarmless, "null|{}", "it is empty"},
    {"dataset_kwargs.skip_prepare_dataset", "", Rule::kHarmless, "false",
     "rows of input_ids are read as they are", "give tokens as .npy or a token shard, see docs/data.md"},
    {"dataset_kwargs.add_special_tokens", "data.add_special_tokens"},
    {"dataset_kwargs.append_concat_token", "data.append_eos", Rule::kNoEqual, "",
     "set data.append_eos: true"},
    {"router_aux_loss_coef", "", Rule::kNoEqual, "", "there is no loss of routers"},
    {"model_init_kwargs", "", Rule::kHarmless, "null|{}", "it is empty"},
    {"model_init_kwargs.attn_implementation", "", Rule::kHarmless, "*", "it chooses kernels"},
    {"model_init_kwargs.use_kernels", "", Rule::kHarmless, "*", "it chooses kernels"},
    {"model_init_kwargs.device_map", "", Rule::kHarmless, "*", "runtime.device names what computes"},
    {"model_init_kwargs.trust_remote_code", "", Rule::kHarmless, "*", "no model code is run"},
    {"model_init_kwargs.use_cache", "", Rule::kHarmless, "*", "training needs no cache of keys and values"},
    {"model_init_kwargs.low_cpu_mem_usage", "", Rule::kHarmless, "*", "weights are read where they belong"},
    {"model_init_kwargs.revision", "", Rule::kHarmless, "main|null", "it is the default",
     "download that revision, and give its folder as model.path"},
    {"gradient_checkpointing_use_reentrant", "", Rule::kHarmless, "*", "the result is the same"},
    {"ignore_bias_buffers", "", Rule::kHarmless, "*", "ranks send each other gradients alone"},
    {"formatting_func", "", Rule::kNoEqual, "", "prepare the texts in their final form"},
    // PEFT and quantization: of LoRA where use_peft is true, settle_trainer.
    {"use_peft", "lora.r", Rule::kLater},
    {"lora_r", "lora.r", Rule::kLater},
    {"lora_alpha", "lora.lora_alpha", Rule::kLater},
    {"lora_dropout", "lora.lora_dropout", Rule::kLater},
    {"lora_target_modules", "lora.target_modules", Rule::kLater},
    {"lora_target_parameters", "", Rule::kNoEqual, "", kAdapters},
    {"lora_modules_to_save", "lora.modules_to_save", Rule::kLater},
    {"lora_task_type", "", Rule::kHarmless, "causal_lm", "it is the task", kAdapters},
    {"use_rslora", "lora.use_rslora", Rule::kLater},
    {"use_dora", "lora.use_dora", Rule::kLater},
    {"load_in_4bit", "quantization.load_in_4bit", Rule::kLater},
    {"load_in_8bit", "quantization.load_in_8bit"},
    {"bnb_4bit_quant_type", "quantization.bnb_4bit_quant_type", Rule::kLater},
    {"use_bnb_nested_quant", "quantization.bnb_4bit_use_double_quant", Rule::kLater},
    {"bnb_4bit_quant_storage", "", Rule::kHarmless, "*", "it is how the codes are laid out"},
};

}  // namespace

std::span<const Row> trl_rows() { return kTrlRows; }

}  // namespace plimsoll::importing
