// The kinds of models of a tokenizer.json, by name.
#pragma once

#include <memory>

#include "base/result.h"
#include "tokenizers/document.h"
#include "tokenizers/vocabulary.h"
#include "tokenizers/word_model.h"

namespace plimsoll::tokenizers {

/// `model`: the tree's member. Errors: kBadData for a kind that is not supported, by its name, and where the
/// vocabulary or the merges that the kind needs are not there.
Status check_model(const Document& document, const Field& model);

/// A model that passed check_model. Errors: as the kind's own build.
Result<std::unique_ptr<const WordModel>> build_model(const Document& document, const Field& model,
                                                     bool byte_level, const Vocabulary& vocabulary);

}  // namespace plimsoll::tokenizers
