// Reads the configuration files that save_pretrained writes beside a tokenizer, and their special tokens.
#pragma once

#include <string>

#include "base/result.h"
#include "io/tree.h"

namespace plimsoll::tokenizers {

/// Within these tokenizer_config.json and its like are read.
inline constexpr io::TreeLimits kConfigLimits{.max_bytes = int64_t{64} << 20, .max_nodes = 5'000'000};
/// The fields that each name a token.
inline constexpr const char* kSpecialTokenFields[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                                      "pad_token", "cls_token", "mask_token"};

/// A JSON object. Errors: kBadData for anything else, with the file; `missing` where there is no such file;
/// kIo.
Result<io::Tree> read_config_object(const std::string& path, ErrorCode missing = ErrorCode::kBadData);
/// Null where there is no such file. Errors: as read_config_object; kIo where the disk does not say whether
/// there is one.
Result<io::Tree> read_config_object_if_there(const std::string& path);

/// What such a field says: a text, or an object that has it as "content". Null where it says nothing.
const std::string* token_text(const io::Tree* field);

}  // namespace plimsoll::tokenizers
