// Special tokens and chat template for GGUF: from
// tokenizer_config.json, tokenizer.json, config.json and chat_template.jinja, in the order of llama.cpp's
// converter.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "gguf/gguf_file.h"
#include "io/tree.h"

namespace plimsoll::gguf {

/// `tokenizer`: the tokenizer.json, null where there is none; `id_of`: the id of a token's text. Always says
/// whether a text begins with bos. Errors: kBadData of the files.
Status add_special_tokens(const std::string& folder, const io::Tree* tokenizer,
                          const std::function<std::optional<int64_t>(const std::string&)>& id_of,
                          int64_t vocab_size, Metadata& metadata);

}  // namespace plimsoll::gguf
