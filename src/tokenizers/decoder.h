// Decoders: tokens back to text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizers/document.h"

namespace plimsoll::tokenizers {

class Decoder {
 public:
  /// `field` may be absent or null: tokens are joined by spaces. Errors: kBadData for a kind that is not
  /// supported.
  static Result<Decoder> build(const Field& field);

  /// The text of a list of tokens, which it takes apart.
  [[nodiscard]] std::string decode(std::vector<std::string> tokens) const;

 private:
  enum class Kind : uint8_t { kByteLevel, kMetaspace, kReplace, kByteFallback, kFuse, kStrip, kWordPiece };
  struct Step {
    Kind kind;
    std::string pattern = {};  // kReplace; kStrip and kMetaspace: one character; kWordPiece: the prefix
    std::string content = {};
    int64_t start = 0;  // kStrip: at most so many on the left and on the right
    int64_t stop = 0;
    bool cleans_up = false;    // kWordPiece: spaces before punctuation vanish
    bool drops_first = false;  // kMetaspace: the first token's replacement characters vanish
  };
  Status add(const Field& field, int depth);
  Status add_metaspace(const Field& field);
  Status add_strip(const Field& field);
  static void step(const Step& how, std::vector<std::string>& tokens);

  std::vector<Step> steps_;
  bool joins_with_space_ = false;
};

}  // namespace plimsoll::tokenizers
