// The token that fills up the shorter rows of a batch, for a model whose config names none.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/result.h"
#include "corpora/encoder_files.h"
#include "io/model_config.h"

namespace plimsoll::corpora {

/// pad_token of the tokenizer's files, else the token that ends a text (by these files, by the config), else
/// unk_token, else bos_token: the first of them that the model of `config` has and that no row ends with. A
/// classifier reads the last token that is no padding, and would pass over that one: `row_ends` are tokens
/// that rows end with, and what the tokenizer puts behind each text is such a one. Nothing where there is
/// none of these. Errors: kIo where the disk does not give one of the tokenizer's files.
Result<std::optional<int64_t>> pad_token_for(const EncoderFiles& files, const io::ConfigJson& config,
                                             std::span<const int32_t> row_ends = {});

/// Whether transformers needs one to run the model's batches and config.json names none.
bool lacks_pad_token(const io::ConfigJson& config);

}  // namespace plimsoll::corpora
