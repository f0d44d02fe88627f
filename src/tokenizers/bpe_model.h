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
#include "tokenizers/word_model.h"

namespace plimsoll::tokenizers {

class BpeModel final : public WordModel {
 public:
  /// `model`: the tree's member; `byte_level`: words are raw bytes, tokens are spelled in the alphabet of
  /// bytes. Errors: kBadData for merges that name unknown tokens, for settings of other kinds of BPE.
  static Result<BpeModel> build(const Document& document, const Field& model, bool byte_level,
                                const Vocabulary& vocabulary);

  void encode_word(std::string_view word, const char* readable_end, const Vocabulary& vocabulary,
                   ModelState& state, std::vector<int32_t>& ids) const override;
  [[nodiscard]] bool parts_between(uint32_t left, uint32_t right) const override;
  void append_ends(std::string_view word, std::span<const int32_t> ids, const Vocabulary& vocabulary,
                   std::vector<size_t>& ends) const override;

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
  void encode_anew(std::string_view part, bool whole, const Vocabulary& vocabulary,
                   ModelState& state) const override;
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
  MergeTable merges_;
  Junctions junctions_;
  std::vector<int32_t> char_ids_;      // by code point; -1 where no token is that character
  std::vector<int32_t> fallback_ids_;  // of "<0x00>" … "<0xFF>"; -1 where there is none
};

}  // namespace plimsoll::tokenizers
