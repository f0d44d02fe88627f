// Determines the tokenizer class that transformers' AutoTokenizer uses for a folder: some of them rebuild
// parts of the tokenizer, whatever its files say.
#pragma once

#include <cstdint>

#include "tokenizers/named_tokens.h"

namespace plimsoll::tokenizers {

enum class TokenizerClass : uint8_t {
  kAny,         ///< the files say all
  kLlama,       ///< LlamaTokenizer
  kGpt2,        ///< GPT2Tokenizer
  kQwen2,       ///< Qwen2Tokenizer
  kBert,        ///< BertTokenizer, and those that are the same under another name
  kXlmRoberta,  ///< XLMRobertaTokenizer
  kCamembert,   ///< CamembertTokenizer
  kT5,          ///< T5Tokenizer
  kAlbert       ///< AlbertTokenizer
};

/// By tokenizer_config.json's and config.json's tokenizer_class and model_type.
/// Source: transformers 5.23, AutoTokenizer.from_pretrained.
TokenizerClass tokenizer_class(const ConfigFiles& files);

}  // namespace plimsoll::tokenizers
