// Adapters and quantised weights, as TRL's ModelConfig and axolotl say them: linear layers, rank, scale, and
// parameters that are trained beside them.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "importing/settle.h"

namespace plimsoll::importing {
namespace {

struct AdapterKey {
  const char* pattern;
  const char* setting;
};
constexpr AdapterKey kLora[] = {{"lora_r", "lora.r"},
                                {"lora_alpha", "lora.lora_alpha"},
                                {"lora_dropout", "lora.lora_dropout"},
                                {"use_rslora", "lora.use_rslora"},
                                {"use_dora", "lora.use_dora"},
                                {"lora_modules_to_save", "lora.modules_to_save"},
                                {"lora_model_dir", "lora.adapter"},
                                {"peft_layers_to_transform", "lora.layers_to_transform"},
                                {"peft_layers_pattern", "lora.layers_pattern"},
                                {"peft_init_lora_weights", "lora.init_lora_weights"},
                                {"peft_trainable_token_indices", "lora.trainable_token_indices"}};
constexpr AdapterKey kQuantization[] = {{"load_in_4bit", "quantization.load_in_4bit"},
                                        {"bnb_4bit_quant_type", "quantization.bnb_4bit_quant_type"},
                                        {"use_bnb_nested_quant", "quantization.bnb_4bit_use_double_quant"}};
constexpr const char* kNoAdapter = "no adapter is asked for: all parameters are trained";

/// Whether PEFT's all-linear has it: a linear map of the families that are known here, and no head.
bool is_linear_of_a_block(const io::Tree& name) {
  static const std::vector<std::string> kLinears = {"q_proj",    "k_proj",  "v_proj",    "o_proj",
                                                    "gate_proj", "up_proj", "down_proj", "c_attn",
                                                    "c_proj",    "c_fc",    "all-linear"};
  return std::find(kLinears.begin(), kLinears.end(), name.text) != kLinears.end();
}

/// TRL takes a list of one as the text in it: a regular expression, or all-linear.
io::Tree modules_of(const SourceKey& key) {
  const std::vector<io::Tree>& items = key.value.items;
  const bool is_text =
      key.value.kind == io::Tree::Kind::kList && items.size() == 1 &&
      (items[0].text == "all-linear" || items[0].text.find_first_of(".*+?|()[]^$\\") != std::string::npos);
  return is_text ? items[0] : key.value;
}

/// axolotl adds the linears that it finds to those that are named.
void settle_all_linear(Draft& draft, const SourceKey& all) {
  const char* const setting = "lora.target_modules";
  if (draft.has("lora.layers_to_transform")) {
    io::Tree names = io::Tree::list();
    for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"})
      names.items.push_back(word(name));
    draft.map(all, setting, names,
              "all-linear takes no layers: these are the linears of all families but GPT-2");
  } else {
    draft.map(all, setting, word("all-linear"));
  }
  const SourceKey* named = draft.find(all.dialect, "lora_target_modules");
  if (named == nullptr) return;
  const bool is_list = named->value.kind == io::Tree::Kind::kList;
  const std::vector<io::Tree> names = is_list ? named->value.items : std::vector{named->value};
  if (std::all_of(names.begin(), names.end(), is_linear_of_a_block))
    draft.joined(*named, setting, "all-linear has them");
  else
    draft.no_equal(*named, "all-linear alone is adapted: name all linears in lora.target_modules for more",
                   setting);
}

void settle_targets_of_adapters(Draft& draft, Dialect dialect, bool is_on) {
  const SourceKey* all = draft.find(dialect, "lora_target_linear");
  const bool takes_all = switch_of(draft, all).value_or(false);
  if (all != nullptr && !takes_all) draft.harmless(*all, "lora_target_modules decides it");
  if (all != nullptr && takes_all && !is_on) draft.harmless(*all, kNoAdapter);
  if (all != nullptr && takes_all && is_on) settle_all_linear(draft, *all);
  const SourceKey* modules = draft.find(dialect, "lora_target_modules");
  if (modules == nullptr || draft.is_accounted(*modules)) return;
  if (is_on)
    draft.map(*modules, "lora.target_modules", modules_of(*modules));
  else
    draft.harmless(*modules, kNoAdapter);
}

/// What says that there are adapters: they have a rank then, or an adapter that goes on has one.
void settle_rank(Draft& draft, Dialect dialect, const SourceKey& key) {
  for (const char* setting : {"lora.r", "lora.adapter"})
    if (draft.has(setting)) return draft.joined(key, setting, "");
  draft.map_words(key, "lora.r", dialect == Dialect::kAxolotl ? "8" : "16", "the rank where none is given");
}

/// axolotl's loftq_bits asks for LoftQ's first values.
void settle_loftq(Draft& draft, Dialect dialect, bool is_on) {
  const SourceKey* bits = draft.find(dialect, "peft.loftq_config.loftq_bits");
  if (bits == nullptr) return;
  if (!is_on) return draft.harmless(*bits, kNoAdapter);
  draft.map(*bits, "lora.loftq_config.loftq_bits", bits->value);
  draft.set("lora.init_lora_weights", word("loftq"), "as " + bits->name);
}

void settle_quantization(Draft& draft, Dialect dialect) {
  const SourceKey* bits = draft.find(dialect, "load_in_4bit");
  for (const AdapterKey& row : kQuantization)
    if (const SourceKey* key = draft.find(dialect, row.pattern)) {
      if (bits != nullptr && bool_in(bits->value).value_or(true))
        draft.map(*key, row.setting, key->value);
      else
        draft.harmless(*key, "weights are kept as they are");
    }
}

}  // namespace

void settle_adapters(Draft& draft, Dialect dialect) {
  const SourceKey* use = draft.find(dialect, "use_peft");
  const SourceKey* adapter = draft.find(dialect, "adapter");
  const bool is_on = (use != nullptr && bool_in(use->value).value_or(false)) ||
                     (adapter != nullptr && !adapter->value.text.empty());
  for (const AdapterKey& row : kLora)
    if (const SourceKey* key = draft.find(dialect, row.pattern)) {
      if (is_on)
        draft.map(*key, row.setting, key->value);
      else
        draft.harmless(*key, kNoAdapter);
    }
  settle_targets_of_adapters(draft, dialect, is_on);
  settle_loftq(draft, dialect, is_on);
  if (use != nullptr && !is_on) draft.harmless(*use, "all parameters are trained");
  for (const SourceKey* key : {use, adapter})
    if (key != nullptr && is_on) settle_rank(draft, dialect, *key);
  settle_quantization(draft, dialect);
}

}  // namespace plimsoll::importing
