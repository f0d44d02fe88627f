// Tells which tokens of a vocabulary may be masked, and which continue a word.
#pragma once

#include "base/result.h"
#include "corpora/encoder_files.h"
#include "datasets/token_masking.h"
#include "settings/run_config.h"

namespace plimsoll::preprocessing {

/// By the tokenizer: what it skips as special is special, and tokens that begin with ##, or in vocabularies
/// that mark where words begin (Ġ, ▁) those without the mark, continue a word. Without a tokenizer
/// (`files` null: texts are bytes, or data are ids) the specials are what config.json names and the mask
/// token. `vocab_size`: the model's. Errors: kBadData where nothing says which token masks others,
/// kInvalidArgument where mlm.mask_token is none of the model's; of config.json.
Result<datasets::TokenKinds> token_kinds(const settings::RunConfig& config,
                                         const corpora::EncoderFiles* files, int64_t vocab_size);

}  // namespace plimsoll::preprocessing
