// The WordPiece model: the longest token that a word starts with, then the longest of those that continue a
// word ("##ing"), and so on. A word that they do not cover, or that is too long, is the unknown token.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizers/document.h"
#include "tokenizers/token_trie.h"
#include "tokenizers/vocabulary.h"
#include "tokenizers/word_model.h"

namespace plimsoll::tokenizers {

class WordPieceModel final : public WordModel {
 public:
  /// `model`: the tree's member (unk_token, continuing_subword_prefix, max_input_chars_per_word). Errors:
  /// kBadData for a field that is missing or mistyped, for words of more than kMostWordChars.
  static Result<WordPieceModel> build(const Document& document, const Field& model,
                                      const Vocabulary& vocabulary);

  /// Time per word grows with its length times the longest token's, so words are bounded.
  static constexpr int64_t kMostWordChars = 10'000;

  void encode_word(std::string_view word, const char* readable_end, const Vocabulary& vocabulary,
                   ModelState& state, std::vector<int32_t>& ids) const override;
  [[nodiscard]] bool parts_between(uint32_t /*left*/, uint32_t /*right*/) const override { return false; }
  void append_ends(std::string_view word, std::span<const int32_t> ids, const Vocabulary& vocabulary,
                   std::vector<size_t>& ends) const override;

 private:
  WordPieceModel() = default;
  [[nodiscard]] bool is_too_long(std::string_view word) const;
  bool append_pieces(std::string_view word, std::vector<int32_t>& ids) const;
  void encode_anew(std::string_view word, bool whole, const Vocabulary& vocabulary,
                   ModelState& state) const override;

  TokenTrie trie_;
  uint32_t continuing_ = TokenTrie::kNone;  // the node behind the prefix
  size_t prefix_bytes_ = 0;
  size_t max_word_chars_ = 0;
  int32_t unknown_id_ = -1;
};

}  // namespace plimsoll::tokenizers
