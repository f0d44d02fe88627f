// The base of models: words met before come from a cache, the others are encoded by the model's own rule.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizers/merges.h"
#include "tokenizers/vocabulary.h"
#include "tokenizers/word_cache.h"

namespace plimsoll::tokenizers {

/// The best piece that ends at some place of a word (UnigramModel); of no characters where none does.
struct BestPiece {
  double score = 0;  ///< of the word up to there
  uint32_t size = 0;
  int32_t id = 0;
};

/// A word by characters, and the best piece up to each.
struct WordLattice {
  std::vector<uint32_t> chars = {};
  std::vector<BestPiece> best = {};
};

/// What encoding needs besides the tokenizer: memory and a cache, one per call in flight.
struct ModelState {
  /// A short word that waits while its cache line is fetched.
  struct Waiting {
    WordCache::Key key;
    uint64_t hash;
  };
  static constexpr size_t kMostWaiting = 16;

  WordCache cache = {};
  LongWordCache long_cache = {};
  Waiting waiting[kMostWaiting];
  size_t num_waiting = 0;
  MergeScratch merging = {};
  std::vector<int32_t> symbols = {};
  WordLattice lattice = {};
  std::string mapped = {};      // a word in the alphabet of bytes
  bool unknown_failed = false;  ///< an unknown token was needed and the vocabulary lacks it
};

class WordModel {
 public:
  virtual ~WordModel() = default;

  /// Takes a word of at least one byte; `readable_end` is the end of the memory that it lies in. Its ids are
  /// appended to `ids` in the order of the words, at the latest by `finish`.
  virtual void encode_word(std::string_view word, const char* readable_end, const Vocabulary& vocabulary,
                           ModelState& state, std::vector<int32_t>& ids) const = 0;
  void finish(const Vocabulary& vocabulary, ModelState& state, std::vector<int32_t>& ids) const;

  /// Whether a word may be cut between two such characters without changing its ids, whatever lies around.
  [[nodiscard]] virtual bool parts_between(uint32_t left, uint32_t right) const = 0;
  /// Where in `word` the tokens end that encode_word made of it; appended to `ends`.
  virtual void append_ends(std::string_view word, std::span<const int32_t> ids, const Vocabulary& vocabulary,
                           std::vector<size_t>& ends) const = 0;

  /// Why a character or a word has no token.
  [[nodiscard]] virtual std::string unknown_problem() const;

 protected:
  static constexpr size_t kLargeWord = size_t{1} << 20;  // whose memory is not kept

  /// Leaves the ids of a word, or of a part of one, in state.symbols.
  virtual void encode_anew(std::string_view part, bool whole, const Vocabulary& vocabulary,
                           ModelState& state) const = 0;
  /// As encode_word: a word, or a part of one, through the caches.
  void take_part(std::string_view part, const char* readable_end, bool whole, const Vocabulary& vocabulary,
                 ModelState& state, std::vector<int32_t>& ids) const;

  bool whole_words_differ_ = false;  // from parts of words with the same bytes
  std::string unknown_token_;

 private:
  void encode_short(const ModelState::Waiting& word, const Vocabulary& vocabulary, ModelState& state,
                    std::vector<int32_t>& ids) const;
  void encode_through_long_cache(std::string_view part, bool whole, const Vocabulary& vocabulary,
                                 ModelState& state) const;
};

}  // namespace plimsoll::tokenizers
