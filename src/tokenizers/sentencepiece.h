// The pieces of a sentencepiece model, tokenizer.model: a protocol buffer of which field 1, repeated, is a
// piece with text (1), score (2) and kind (3); field 2 is how it was trained, field 3 how text is normalized.
// https://github.com/google/sentencepiece,
// sentencepiece_model.proto
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace plimsoll::tokenizers {

struct Piece {
  std::string text = {};
  float score = 0;
  int32_t kind = 1;  ///< 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte
};

struct SentencePieceModel {
  std::vector<Piece> pieces = {};
  int32_t model_type = 1;  ///< 1 unigram, 2 BPE, 3 words, 4 characters
  bool byte_fallback = false;
  bool treats_whitespace_as_suffix = false;
  std::string charsmap = {};  ///< by which characters are normalized; empty: they are not
  bool adds_dummy_prefix = true;
  bool removes_extra_whitespaces = true;
};

/// Errors: kBadData where it is no such buffer, or has no pieces.
Result<SentencePieceModel> parse_sentencepiece(std::string_view bytes);

}  // namespace plimsoll::tokenizers
