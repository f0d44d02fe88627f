// The description of a model family, and the list of the families. A new one adds its file's function at
// the end of this header.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "models/decoder_config.h"
#include "models/model.h"

namespace plimsoll::models {

/// A published size of a family.
struct Preset {
  std::string_view name;
  std::string_view hub_id;
  std::string_view licence;         ///< of the weights, by its usual name
  int64_t parameters = 0;           ///< as published, or counted by transformers
  std::string_view config;          ///< its config.json, shortened to the fields that matter
  std::string_view processor = {};  ///< an image model's preprocessor_config.json
};

/// What config.json calls a size: the first name that it has. An empty name is none.
using FieldNames = std::array<std::string_view, 2>;

/// Where a family's config.json says how large the model is.
struct SizeFields {
  FieldNames layers = {"num_hidden_layers"};
  FieldNames hidden = {"hidden_size"};
  FieldNames heads = {"num_attention_heads"};
  FieldNames kv_heads = {"num_key_value_heads"};
  FieldNames inner = {"intermediate_size"};
  FieldNames positions = {"max_position_embeddings"};
  FieldNames vocabulary = {"vocab_size"};
  FieldNames lists_of_layers = {"layer_types", "no_rope_layers"};  ///< with an entry a layer
};

struct Family {
  std::string_view model_type;  ///< of config.json
  std::string_view class_name;  ///< what transformers' classes begin with
  /// What the class of a model that config.json gives no head ends with.
  std::string_view causal_class = "ForCausalLM";
  /// Of a family of Llama's kind: its config, of which models/decoder.h makes the model. Else null.
  Result<DecoderConfig> (*parse)(const io::ConfigJson& config) = nullptr;
  /// Of any other.
  Result<std::unique_ptr<Model>> (*make)(const io::ConfigJson& config) = nullptr;
  std::span<const std::string_view> lora_targets = {};  ///< PEFT's target_modules where none are named
  SizeFields fields = {};
  /// A small config.json, odd in every size that could be assumed even. Tests take it for the family;
  /// tests/interop/cases.py reads it from the source.
  std::string_view sample;
  std::span<const Preset> presets = {};
};

/// Null where there is none of that model_type.
const Family* find_family(std::string_view model_type);
/// Whether its models run on images (models/image_model.h).
bool is_image_family(const Family& family);
/// Whether its models are encoders of text.
bool is_encoder_family(const Family& family);
/// The model types, in the list's order: "llama, mistral, …".
std::string family_names();

// Each family's file exports it.
const Family& bert_family();
const Family& camembert_family();
const Family& convnext_family();
const Family& dinov2_family();
const Family& distilbert_family();
const Family& gpt2_family();
const Family& llama_family();
const Family& mistral_family();
const Family& modernbert_family();
const Family& qwen2_family();
const Family& qwen3_family();
const Family& resnet_family();
const Family& roberta_family();
const Family& smollm3_family();
const Family& vit_family();
const Family& xlm_roberta_family();

using FamilyFile = const Family& (*)();
/// Causal language models.
inline constexpr std::array kLanguageFamilies = {llama_family, mistral_family, qwen2_family,
                                                 qwen3_family, smollm3_family, gpt2_family};
/// Language models that see both ways (LanguageModel::is_bidirectional).
inline constexpr std::array kEncoderFamilies = {bert_family,      roberta_family,    xlm_roberta_family,
                                                camembert_family, distilbert_family, modernbert_family};
inline constexpr std::array kImageFamilies = {vit_family, dinov2_family, convnext_family, resnet_family};
/// All of them: causal language models, encoders, then image models.
inline constexpr auto kFamilies = [] {
  std::array<FamilyFile, kLanguageFamilies.size() + kEncoderFamilies.size() + kImageFamilies.size()> all{};
  auto* end = std::ranges::copy(kLanguageFamilies, all.begin()).out;
  end = std::ranges::copy(kEncoderFamilies, end).out;
  std::ranges::copy(kImageFamilies, end);
  return all;
}();

}  // namespace plimsoll::models
