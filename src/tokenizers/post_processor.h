// Post-processors: the special tokens around a text, or around two.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "tokenizers/document.h"

namespace plimsoll::tokenizers {

class PostProcessor {
 public:
  /// `field` may be absent or null. ByteLevel, which moves offsets alone, does nothing here.
  /// Errors: kBadData for a kind that is not supported, for templates that name unknown tokens, a text twice
  /// or, of a single text, a second one.
  static Result<PostProcessor> build(const Field& field);

  /// What stands around the texts.
  struct Piece {
    bool is_text = false;
    bool is_second = false;  ///< of a pair, the second text
    int32_t type_id = 0;     ///< of all its tokens
    std::vector<int32_t> ids = {};
  };
  /// No pieces at all: the text alone.
  [[nodiscard]] const std::vector<Piece>& pieces() const { return pieces_; }
  /// The same for a pair; no pieces: one text behind the other, of types 0 and 1.
  [[nodiscard]] const std::vector<Piece>& pair_pieces() const { return pair_pieces_; }
  /// Whether a template has a place for both texts of a pair.
  [[nodiscard]] bool takes_pairs() const { return takes_pairs_; }

 private:
  Status add(const Field& field, int depth);
  Status add_template(const Field& field);
  Status add_around(const Field& field);
  std::vector<Piece> pieces_, pair_pieces_;
  bool takes_pairs_ = true;
};

}  // namespace plimsoll::tokenizers
