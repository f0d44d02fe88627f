// The files of a new byte-level tokenizer: tokenizer.json for the `tokenizers` package and this program,
// tokenizer_config.json so that transformers' AutoTokenizer opens the folder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer_training/bpe_trainer.h"

namespace plimsoll::tokenizer_training {

/// The kinds of words: "gpt2", "llama3", "qwen2" (with NFC), "smollm", "gpt4o".
std::vector<std::string> pre_tokenizer_names();

/// The text of tokenizer.json. `special_tokens` are the first of `trained.tokens`.
/// Errors: kInvalidArgument for a pre-tokenizer of another name.
Result<std::string> tokenizer_json(const TrainedBpe& trained, const std::vector<std::string>& special_tokens,
                                   std::string_view pre_tokenizer);

/// The text of tokenizer_config.json. Special tokens get the parts that their usual spellings say:
/// "<|endoftext|>" ends a text, "<s>" begins one, "<pad>" pads.
std::string tokenizer_config_json(const std::vector<std::string>& special_tokens);

}  // namespace plimsoll::tokenizer_training
