// Added tokens: strings such as "<|im_end|>" that are found in the text before anything else happens to it,
// or, where they are `normalized`, right after normalization.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "tokenizers/document.h"
#include "tokenizers/normalizer.h"
#include "tokenizers/vocabulary.h"

namespace plimsoll::tokenizers {

struct AddedToken {
  std::string content = {};
  std::string pattern =
      {};  ///< what is looked for, and what decoding sees: the content, normalized where it is to be
  int32_t id = 0;
  bool single_word = false;
  bool strips_left = false;
  bool strips_right = false;
  bool normalized = false;
  bool special = false;
};

/// A token that a file beside tokenizer.json names.
struct NamedToken {
  AddedToken token = {};
  std::optional<int64_t> said_id = {};  ///< where the file gives it one
  std::string source = {};              ///< the file, and what in it
  bool is_text = false;                 ///< named by its text alone, without rules
};

/// Finds the leftmost of a set of strings, of those that start there the longest.
class TokenFinder {
 public:
  struct Match {
    size_t begin;
    size_t end;
    uint32_t value;
  };
  /// False where the string is empty or in the set already.
  bool add(std::string_view text, uint32_t value);
  [[nodiscard]] bool empty() const { return nodes_.size() == 1; }
  [[nodiscard]] std::optional<Match> find(std::string_view text, size_t from) const;
  /// Whether a string of the set that starts at `begin` may end at or behind `at`, whatever follows the text.
  [[nodiscard]] bool reaches(std::string_view text, size_t begin, size_t at) const;
  [[nodiscard]] size_t max_bytes() const { return max_bytes_; }

 private:
  struct Node {
    int32_t value = -1;
    std::vector<std::pair<unsigned char, uint32_t>> children = {};
  };
  [[nodiscard]] uint32_t child(uint32_t node, unsigned char byte) const;  // 0 where there is none
  std::vector<Node> nodes_{1};
  uint32_t first_[256] = {};  // the root's children
  size_t max_bytes_ = 0;
};

/// A stretch of text, or an added token that stands there, with the spaces that it strips.
struct Section {
  std::string_view text;
  int32_t id = -1;
};

class AddedTokens {
 public:
  /// Reads the list and puts the tokens into the vocabulary, then those of `named`, which stand outside of
  /// tokenizer.json. Ids are the package's: a token of the model's keeps its id, others count on from the
  /// vocabulary's size; of `named` those that the list has too change their rules alone. `splits_special`:
  /// special tokens in a text are cut like any other text. Errors: kBadData for missing or mistyped fields,
  /// a token twice in the list, an id that two tokens would have.
  static Result<AddedTokens> build(const Field& list, const std::vector<NamedToken>& named,
                                   bool splits_special, const Normalizer& normalizer, Vocabulary& vocabulary);

  /// Appends the sections of a text (`normalized`: of normalized text, with the tokens to be found in that).
  void cut(std::string_view text, bool normalized, std::vector<Section>& sections) const;

  /// Whether what lies before `at` may share in a token behind it, or the other way round, whatever follows
  /// the text: one that lies across, touches it, or strips spaces from there. `text` is a stretch of a longer
  /// one; max_bytes() before `at` are enough of it.
  [[nodiscard]] bool touches(std::string_view text, size_t at, bool normalized) const;
  [[nodiscard]] size_t max_bytes() const { return std::max(raw_.max_bytes(), normalized_.max_bytes()); }

  [[nodiscard]] const std::vector<AddedToken>& tokens() const { return tokens_; }

 private:
  Status add(const Field& field, Vocabulary& vocabulary, int32_t& next_id);
  Status add_named(const std::vector<NamedToken>& named, Vocabulary& vocabulary);
  /// Of the tokens, once they are all there.
  Status index(const Field& list, const Normalizer& normalizer);
  /// Gives the token its id and puts it behind the others.
  Status enter(AddedToken token, const Field& place, Vocabulary& vocabulary, int32_t& next_id);
  std::vector<AddedToken> tokens_;
  std::unordered_set<int32_t> ids_;
  bool splits_special_ = false;
  TokenFinder raw_;
  TokenFinder normalized_;
  bool strips_left_ = false;  // one of them
  bool strips_right_ = false;
};

}  // namespace plimsoll::tokenizers
