// A tokenizer as llama.cpp keeps it: tokens with their kinds, merges or scores, special ids, the chat
// template.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "gguf/gguf_file.h"

namespace plimsoll::gguf {

struct VocabularyNote {
  std::string kind;  ///< "gpt2", "llama", "none": tokenizer.ggml.model
  std::string text;  ///< for people; empty: nothing to say
};

/// Adds tokenizer.* of the model's folder; `vocab_size` rows have the embedding. Byte-level BPE has merges;
/// BPE over characters with byte fallback has scores, tokenizer.model's where that lies there, else by the
/// ranks of the merges. Without a tokenizer.json the model is "none": ids alone. Errors: kBadData for what
/// cannot be read, and where the tokenizer has more tokens than the model; kInvalidArgument for a
/// pre-tokenizer that llama.cpp has no name for.
Result<VocabularyNote> add_vocabulary(const std::string& folder, const std::string& architecture,
                                      int64_t vocab_size, Metadata& metadata);

}  // namespace plimsoll::gguf
