// The BPE model: a word to ids. Words are bytes (behind a ByteLevel pre-tokenizer) or characters, where a
// character without a token falls back to the tokens of its bytes or to the unknown token.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizers/document.h"
#include "tokenizers/junctions.h"
#include "tokenizers/merges.h"
#include "tokenizers/vocabulary.h"
#include "tokenizers/word_cache.h"

namespace plimsoll::tokenizers {

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
  std::string mapped = {};      // a word in the alphabet of bytes
  bool unknown_failed = false;  ///< an unknown token was needed and the vocabulary lacks it
};

class BpeModel {
 public:
  /// `model`: the tree's member; `byte_level`: words are raw bytes, tokens are spelled in the alphabet of
  /// bytes. Errors: kBadData for merges that name unknown tokens, for settings of other kinds of BPE.
  static Result<BpeModel> build(const Document& document, const Field& model, bool byte_level,
                                const Vocabulary& vocabulary);

  /// Takes a word of at least one byte; `readable_end` is the end of the memory that it lies in. Its ids are
  /// appended to `ids` in the order of the words, at the latest by `finish`.
  void encode_word(std::string_view word, const char* readable_end, const Vocabulary& vocabulary,
                   ModelState& state, std::vector<int32_t>& ids) const;
  void finish(const Vocabulary& vocabulary, ModelState& state, std::vector<int32_t>& ids) const;

  /// Whether a word may be cut between two such characters without changing its ids, whatever lies around.
  [[nodiscard]] bool parts_between(uint32_t left, uint32_t right) const;
  /// Where in `word` the tokens end that encode_word made of it; appended to `ends`.
  void append_ends(std::string_view word, std::span<const int32_t> ids, const Vocabulary& vocabulary,
                   std::vector<size_t>& ends) const;

  [[nodiscard]] const std::string& unknown_token() const { return unknown_token_; }

 private:
  /// What becomes of a character: its token, tokens of its bytes, the unknown token, nothing.
  enum class Unit : uint8_t { kKnown, kBytes, kUnknown, kDropped };
  struct Next {
    uint32_t code_point;
    int length;
  };

  BpeModel(size_t num_merges, size_t num_junctions) : merges_(num_merges), junctions_(num_junctions) {}
  Status read_settings(const Field& model, const Vocabulary& vocabulary);
  void index_characters(const Vocabulary& vocabulary);
  Status add_merges(const Document& document, const Field& model, const Vocabulary& vocabulary);

  Next next(const char* p) const;
  int32_t char_id(uint32_t code_point) const {
    return code_point < char_ids_.size() ? char_ids_[code_point] : -1;
  }
  Unit unit(uint32_t code_point) const {
    return char_id(code_point) >= 0 ? Unit::kKnown : rare_unit(code_point);
  }
  Unit rare_unit(uint32_t code_point) const;
  bool has_bytes(uint32_t code_point) const;
  void append_symbols(std::string_view word, ModelState& state) const;
  void append_other(uint32_t code_point, bool& pending, ModelState& state) const;
  void take_part(std::string_view part, const char* readable_end, bool whole, const Vocabulary& vocabulary,
                 ModelState& state, std::vector<int32_t>& ids) const;
  void encode_short(const ModelState::Waiting& word, const Vocabulary& vocabulary, ModelState& state,
                    std::vector<int32_t>& ids) const;
  void encode_anew(std::string_view part, bool whole, const Vocabulary& vocabulary, ModelState& state) const;
  void encode_through_long_cache(std::string_view part, bool whole, const Vocabulary& vocabulary,
                                 ModelState& state) const;
  void encode_long(std::string_view word, const char* readable_end, const Vocabulary& vocabulary,
                   ModelState& state, std::vector<int32_t>& ids) const;
  size_t token_width(int32_t id, const Vocabulary& vocabulary) const;
  bool whole_token(std::string_view word, const Vocabulary& vocabulary, ModelState& state) const;

  bool byte_level_ = false;
  bool ignore_merges_ = false;
  bool byte_fallback_ = false;
  bool fuse_unknown_ = false;
  bool has_unknown_ = false;
  bool bytes_merge_ = false;  // a merge has a byte's token on a side
  int32_t unknown_id_ = -1;
  std::string unknown_token_;
  MergeTable merges_;
  Junctions junctions_;
  std::vector<int32_t> char_ids_;      // by code point; -1 where no token is that character
  std::vector<int32_t> fallback_ids_;  // of "<0x00>" … "<0xFF>"; -1 where there is none
};

}  // namespace plimsoll::tokenizers
