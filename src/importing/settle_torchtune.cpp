// torchtune's recipes: a batch, a length, weights in dtype, and torch.optim's defaults.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "importing/settle.h"

namespace plimsoll::importing {
namespace {

constexpr Dialect kTorchtune = Dialect::kTorchtune;

void settle_length(Draft& draft) {
  const SourceKey* epochs = draft.find(kTorchtune, "epochs");
  const SourceKey* per_epoch = draft.find(kTorchtune, "max_steps_per_epoch");
  const auto steps = count_of(draft, per_epoch, 1), count = count_of(draft, epochs, 1);
  if (steps) {
    draft.map(*per_epoch, "training.max_steps",
              io::Tree::of(*steps * std::min<int64_t>(count.value_or(1), 1 << 20)),
              fmt::format("{} epochs of at most {} steps", count.value_or(1), *steps));
    if (count) draft.joined(*epochs, "training.max_steps", "");
  } else if (count) {
    draft.map(*epochs, "training.num_epochs", epochs->value);
  }
}

void settle_dtype(Draft& draft) {
  const SourceKey* dtype = draft.find(kTorchtune, "dtype");
  if (dtype == nullptr) return;
  if (dtype->value.text == "bf16")
    train_in_bf16(draft, *dtype, "weights, gradients and moments in bf16, without masters");
  else if (dtype->value.text == "fp32")
    draft.map(*dtype, "training.precision", word("fp32"));
  else if (dtype->value.text == "fp16")
    draft.no_equal(*dtype, "weights are kept in fp32: no update fits in fp16 alone", "training.precision");
  else
    draft.wrong(*dtype, "bf16, fp16 or fp32");
}

/// Of torch's Adam the decay goes through the moments, of AdamW past them; each rule has a default of its
/// own.
void settle_rule(Draft& draft) {
  const SourceKey* component = draft.find(kTorchtune, "optimizer._component_");
  const SourceKey* decay = draft.find(kTorchtune, "optimizer.weight_decay");
  const std::string name = component == nullptr ? "" : component->value.text;
  const bool is_l2 = name == "torch.optim.Adam";
  if (decay != nullptr) {
    const bool is_zero = number_in(decay->value).value_or(1) == 0;
    if (is_l2 && !is_zero)
      draft.no_equal(*decay, "torch.optim.Adam decays through its moments, adam here does not decay",
                     "training.weight_decay");
    else
      draft.map(*decay, "training.weight_decay", decay->value);
  } else if (name.ends_with("AdamW") || name.find("AdamW") != std::string::npos) {
    draft.set_default("training.weight_decay", "0.01", "torch's default of AdamW");
  } else if (name.ends_with("Muon")) {
    draft.set_default("training.weight_decay", "0.1", "torch's default of Muon");
  } else if (name.ends_with("Lion")) {
    draft.set_default("training.weight_decay", "0", "bitsandbytes' default of Lion");
  }
  if (const SourceKey* betas = draft.find(kTorchtune, "optimizer.betas")) {
    const auto& items = betas->value.items;
    if (items.size() != 2 || !number_in(items[0]) || !number_in(items[1]))
      return draft.wrong(*betas, "a list of two numbers");
    draft.map(*betas, "training.adam_beta1", items[0], "the first of betas");
    draft.set("training.adam_beta2", items[1], "the second of " + betas->name);
  }
}

void settle_data(Draft& draft) {
  const SourceKey* component = draft.find(kTorchtune, "dataset._component_");
  const std::string name = component == nullptr ? "" : component->value.text;
  const SourceKey* files = draft.find(kTorchtune, "dataset.data_files");
  const SourceKey* source = draft.find(kTorchtune, "dataset.source");
  if (files != nullptr) settle_data_file(draft, *files, "data.train");
  if (source != nullptr && files != nullptr)
    draft.harmless(*source, "a file is known by its name");
  else if (source != nullptr)
    settle_data_file(draft, *source, "data.train");
  if (component != nullptr) {
    if (files != nullptr || source != nullptr) {
      draft.harmless(*component, "an example is known by the names of its columns");
    } else {
      draft.no_equal(*component, "nothing is downloaded: save it as JSON lines, and name the file",
                     "data.train");
      draft.fill_in("data.train", name.substr(0, 100) + " as JSON lines");
    }
  }
  const bool is_text = name.find("text_completion") != std::string::npos;
  const bool is_alpaca = name.find("alpaca") != std::string::npos ||
                         name.find("grammar") != std::string::npos ||
                         name.find("samsum") != std::string::npos;
  if (const SourceKey* inputs = draft.find(kTorchtune, "dataset.train_on_input")) {
    if (const auto on = switch_of(draft, inputs))
      draft.map(*inputs, "data.loss", word(*on ? "all" : "auto"),
                *on ? "" : "the assistant's turns and completions");
  } else if (is_alpaca && name.find("alpaca") != std::string::npos) {
    draft.set_default("data.loss", "all", "torchtune's default of alpaca");
  }
  if (const SourceKey* column = draft.find(kTorchtune, "dataset.column"))
    draft.map(*column, "data.text_key", column->value);
  draft.set_default("data.append_eos", is_text ? "true" : "auto,!true", "torchtune's default");
  draft.set_default("data.packing", "pad", "torchtune's default");
  if (const SourceKey* length = draft.find(kTorchtune, "tokenizer.max_seq_len")) {
    draft.map(*length, "data.sequence_length", length->value);
    draft.set_default("data.long_documents", "truncate,!cut", "torchtune keeps the start of what is longer");
  } else {
    draft.fill_in("data.sequence_length", "tokens of the longest example; 512 where nothing is said");
  }
}

/// Adapters' modules, by PEFT's names.
void settle_modules(Draft& draft) {
  io::Tree modules = io::Tree::list();
  if (const SourceKey* attention = draft.find(kTorchtune, "model.lora_attn_modules"))
    for (const io::Tree& item : attention->value.items)
      modules.items.push_back(word(item.text == "output_proj" ? "o_proj" : item.text.c_str()));
  if (const SourceKey* mlp = draft.find(kTorchtune, "model.apply_lora_to_mlp");
      mlp != nullptr && bool_in(mlp->value).value_or(false))
    for (const char* name : {"gate_proj", "up_proj", "down_proj"}) modules.items.push_back(word(name));
  if (const SourceKey* output = draft.find(kTorchtune, "model.apply_lora_to_output");
      output != nullptr && bool_in(output->value).value_or(false))
    modules.items.push_back(word("lm_head"));
  for (const char* name :
       {"model.lora_attn_modules", "model.apply_lora_to_mlp", "model.apply_lora_to_output"})
    if (const SourceKey* key = draft.find(kTorchtune, name)) {
      if (bool_in(key->value) == false)
        draft.harmless(*key, "false names no linear");
      else
        draft.map(*key, "lora.target_modules", modules);
    }
}

}  // namespace

void settle_torchtune(Draft& draft) {
  settle_batch(draft, {.micro = draft.find(kTorchtune, "batch_size"),
                       .accumulation = draft.find(kTorchtune, "gradient_accumulation_steps"),
                       .default_micro = 1});
  settle_length(draft);
  settle_dtype(draft);
  settle_rule(draft);
  settle_data(draft);
  settle_modules(draft);
  if (const SourceKey* model = draft.find(kTorchtune, "model._component_")) {
    const bool has_adapters = model->value.text.find(".lora_") != std::string::npos ||
                              model->value.text.find(".qlora_") != std::string::npos;
    if (has_adapters && draft.find(kTorchtune, "model.lora_rank") == nullptr)
      draft.no_equal(*model, "adapters without a rank: ALL parameters are trained unless lora.r is set",
                     "lora.r");
    else
      draft.harmless(*model, "config.json of model.path decides the model");
  }
  for (const Source& source : draft.sources())
    for (const SourceKey& key : source.keys)
      if (source.dialect == kTorchtune && key.pattern == "seed" && key.value.is_null())
        draft.harmless(key, "null draws one each time; training.seed is 42, each time the same run");
  draft.set_default("training.lr_scheduler", "constant", "torchtune has none by default");
  draft.set_default("training.learning_rate", "1e-3", "torch's default");
  draft.set_default("training.max_grad_norm", "null", "torchtune does not clip by default");
  draft.set_default("training.weight_decay_scope", "all", "torch.optim decays every parameter");
}

}  // namespace plimsoll::importing
