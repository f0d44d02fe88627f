// The Unigram model: of all ways to put a word together from pieces, the one whose scores (logarithms of
// probabilities) have the largest sum. A character that no piece covers is unknown; a run of those is one
// token, or the tokens of its bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizers/document.h"
#include "tokenizers/piece_trie.h"
#include "tokenizers/vocabulary.h"
#include "tokenizers/word_model.h"

namespace plimsoll::tokenizers {

class UnigramModel final : public WordModel {
 public:
  /// `model`: the tree's member (unk_id, byte_fallback); the document's vocabulary has scores. Errors:
  /// kBadData for a mistyped field, an unk_id that no piece has, more text in the pieces than a trie takes.
  static Result<UnigramModel> build(const Document& document, const Field& model,
                                    const Vocabulary& vocabulary);

  void encode_word(std::string_view word, const char* readable_end, const Vocabulary& vocabulary,
                   ModelState& state, std::vector<int32_t>& ids) const override;
  /// The sums of a word's scores are rounded from its start on, so none is cut.
  [[nodiscard]] bool parts_between(uint32_t /*left*/, uint32_t /*right*/) const override { return false; }
  void append_ends(std::string_view word, std::span<const int32_t> ids, const Vocabulary& vocabulary,
                   std::vector<size_t>& ends) const override;
  [[nodiscard]] std::string unknown_problem() const override { return "model.unk_id is null"; }

 private:
  UnigramModel() = default;
  [[nodiscard]] bool find_best(std::string_view word, WordLattice& lattice) const;
  /// Calls take(end, id) for each token of the best way, the last one first; `end` in bytes of the word.
  template <typename Take>
  void each_token(std::string_view word, const WordLattice& lattice, const Take& take) const;
  template <typename Take>
  void take_unknown(std::string_view word, size_t begin, size_t end, const Take& take) const;
  void encode_anew(std::string_view word, bool whole, const Vocabulary& vocabulary,
                   ModelState& state) const override;

  PieceTrie trie_;
  std::vector<double> scores_;     // by id
  std::vector<int32_t> byte_ids_;  // of "<0x00>" … "<0xFF>"; -1 where there is none
  bool byte_fallback_ = false;
  int32_t unknown_id_ = -1;
  double unknown_score_ = 0;
};

}  // namespace plimsoll::tokenizers
