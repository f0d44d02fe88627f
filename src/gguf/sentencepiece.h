// The pieces of a sentencepiece model, tokenizer.model: a protocol buffer of which field 1, repeated, is a
// piece with text (1), score (2) and kind (3). https://github.com/google/sentencepiece,
// sentencepiece_model.proto
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace plimsoll::gguf {

struct Piece {
  std::string text = {};
  float score = 0;
  int32_t kind = 1;  ///< 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte
};

/// Errors: kBadData where it is no such buffer, or has no pieces.
Result<std::vector<Piece>> parse_pieces(std::string_view bytes);

}  // namespace plimsoll::gguf
