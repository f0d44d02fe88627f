// Added tokens: strings such as "<|im_end|>" that are found in the text before anything else happens to it,
// or, where they are `normalized`, right after normalization.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "data/tokenizer/document.h"
#include "data/tokenizer/normalizer.h"
#include "data/tokenizer/vocabulary.h"

namespace plimsoll::tokenizer {

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

 private:
  struct Node {
    int32_t value = -1;
    std::vector<std::pair<unsigned char, uint32_t>> children = {};
  };
  [[nodiscard]] uint32_t child(uint32_t node, unsigned char byte) const;  // 0 where there is none
  std::vector<Node> nodes_{1};
  uint32_t first_[256] = {};  // the root's children
};

/// A stretch of text, or an added token in its place (text is then empty).
struct Section {
  std::string_view text;
  int32_t id = -1;
};

class AddedTokens {
 public:
  /// Reads the list and puts the tokens into the vocabulary. Ids are the package's: a token of the model's
  /// keeps its id, others count on from the vocabulary's size. Errors: kBadData for missing or mistyped
  /// fields, a token twice, an id that two tokens would have.
  static Result<AddedTokens> build(const Field& list, const Normalizer& normalizer, Vocabulary& vocabulary);

  /// Appends the sections of a text (`normalized`: of normalized text, with the tokens to be found in that).
  void cut(std::string_view text, bool normalized, std::vector<Section>& sections) const;

  [[nodiscard]] const std::vector<AddedToken>& tokens() const { return tokens_; }

 private:
  Status add(const Field& field, const Normalizer& normalizer, Vocabulary& vocabulary, int32_t& next_id);
  std::vector<AddedToken> tokens_;
  std::unordered_set<int32_t> ids_;
  TokenFinder raw_;
  TokenFinder normalized_;
};

}  // namespace plimsoll::tokenizer
