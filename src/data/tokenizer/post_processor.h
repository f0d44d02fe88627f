// Post-processors: the special tokens around a text.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "data/tokenizer/document.h"

namespace plimsoll::tokenizer {

class PostProcessor {
 public:
  /// `field` may be absent or null. ByteLevel, which moves offsets alone, does nothing here.
  /// Errors: kBadData for a kind that is not supported, for templates that name unknown tokens or a second
  /// text.
  static Result<PostProcessor> build(const Field& field);

  /// What stands around the text; no pieces at all: the text alone.
  struct Piece {
    bool is_text = false;
    std::vector<int32_t> ids = {};
  };
  [[nodiscard]] const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  Status add(const Field& field, int depth);
  Status add_template(const Field& field);
  Status add_around(const Field& field);
  std::vector<Piece> pieces_;
};

}  // namespace plimsoll::tokenizer
