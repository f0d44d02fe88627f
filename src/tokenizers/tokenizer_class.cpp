#include "tokenizers/tokenizer_class.h"

#include <string>
#include <string_view>
#include <utility>

namespace plimsoll::tokenizers {
namespace {

std::string text_of(const io::Tree& tree, std::string_view name) {
  const io::Tree* value = tree.find(name);
  return value != nullptr && value->kind == io::Tree::Kind::kString ? value->text : std::string();
}

/// Names of BertTokenizer.
constexpr const char* kBertTokenizers[] = {"BertTokenizer",       "DistilBertTokenizer", "ElectraTokenizer",
                                           "MobileBertTokenizer", "ConvBertTokenizer",   "LxmertTokenizer",
                                           "SqueezeBertTokenizer"};
constexpr const char* kBertFamilies[] = {"bert",  "distilbert",    "electra",    "convbert",   "nomic_bert",
                                         "nezha", "megatron-bert", "mobilebert", "squeezebert"};

constexpr std::pair<const char*, TokenizerClass> kUnigramTokenizers[] = {
    {"XLMRobertaTokenizer", TokenizerClass::kXlmRoberta},
    {"CamembertTokenizer", TokenizerClass::kCamembert},
    {"T5Tokenizer", TokenizerClass::kT5},
    {"AlbertTokenizer", TokenizerClass::kAlbert}};
constexpr std::pair<const char*, TokenizerClass> kUnigramFamilies[] = {
    {"xlm-roberta", TokenizerClass::kXlmRoberta},
    {"xmod", TokenizerClass::kXlmRoberta},
    {"gte", TokenizerClass::kXlmRoberta},
    {"jina_embeddings_v3", TokenizerClass::kXlmRoberta},
    {"camembert", TokenizerClass::kCamembert},
    {"t5", TokenizerClass::kT5},
    {"mt5", TokenizerClass::kT5},
    {"switch_transformers", TokenizerClass::kT5},
    {"albert", TokenizerClass::kAlbert},
    {"yoso", TokenizerClass::kAlbert}};

TokenizerClass by_name(std::string_view name) {
  if (name.ends_with("Fast")) name.remove_suffix(4);
  if (name == "LlamaTokenizer") return TokenizerClass::kLlama;
  if (name == "GPT2Tokenizer") return TokenizerClass::kGpt2;
  if (name == "Qwen2Tokenizer") return TokenizerClass::kQwen2;
  for (const auto& [unigram, kind] : kUnigramTokenizers)
    if (name == unigram) return kind;
  for (const char* bert : kBertTokenizers)
    if (name == bert) return TokenizerClass::kBert;
  return TokenizerClass::kAny;
}

/// The class that transformers keeps for a family.
TokenizerClass of_family(std::string_view model_type) {
  if (model_type == "gpt2") return TokenizerClass::kGpt2;
  if (model_type == "qwen2" || model_type == "qwen3") return TokenizerClass::kQwen2;
  for (const auto& [unigram, kind] : kUnigramFamilies)
    if (model_type == unigram) return kind;
  for (const char* bert : kBertFamilies)
    if (model_type == bert) return TokenizerClass::kBert;
  return TokenizerClass::kAny;
}

/// Families whose folders are opened by their files where they name another class.
constexpr const char* kOpenedByFiles[] = {"mistral",  "phi3", "olmo2",         "granite",
                                          "stablelm", "umt5", "xlm-roberta-xl"};

}  // namespace

TokenizerClass tokenizer_class(const ConfigFiles& files) {
  std::string name = text_of(files.config, "tokenizer_class");
  if (name.empty()) name = text_of(files.model, "tokenizer_class");
  const std::string family = text_of(files.model, "model_type");
  if (name.empty()) return of_family(family);
  // Qwen2's folders are known to name wrong classes.
  if (family == "qwen2") return TokenizerClass::kQwen2;
  for (const char* by_files : kOpenedByFiles)
    if (family == by_files) return TokenizerClass::kAny;
  return by_name(name);
}

}  // namespace plimsoll::tokenizers
