// The parts of a tokenizer that some classes of transformers rebuild, whatever the files of a folder say.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "io/tree.h"
#include "tokenizers/named_tokens.h"
#include "tokenizers/tokenizer_class.h"

namespace plimsoll::tokenizers {

/// Sets the model's flags, normalizer, pre_tokenizer and decoder of a document's root as `kind` does; kAny:
/// changes nothing. The post_processor stays (BertTokenizer's: set_text_ends). `prefix_space`:
/// add_prefix_space where tokenizer_config.json does not say it (LlamaTokenizer). Source: transformers 5.23,
/// __init__ of GPT2Tokenizer, Qwen2Tokenizer, LlamaTokenizer, BertTokenizer.
void set_class_parts(TokenizerClass kind, const ConfigFiles& files, bool prefix_space, io::Tree& root);

/// Gives tokenizer_config.json the special tokens that a class has where none are given.
void set_default_tokens(TokenizerClass kind, ConfigFiles& files);

/// The class that rebuilds the parts of a tokenizer.json: tokenizer_class(files), but for LlamaTokenizer,
/// which leaves a file that is byte-level as it is. `json`: its text.
/// Source: transformers 5.23, AutoTokenizer.from_pretrained and TokenizersBackend.convert_to_native_format.
TokenizerClass class_of_json(const ConfigFiles& files, std::string_view json);

}  // namespace plimsoll::tokenizers
