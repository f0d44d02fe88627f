// Tokens by id and ids by token; added tokens are in it too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "data/tokenizer/document.h"

namespace plimsoll::tokenizer {

class Vocabulary {
 public:
  /// Moves the entries out of the document.
  /// Errors: kBadData for a token or an id that stands twice, for an id below 0 or far beyond the number of entries.
  static Result<Vocabulary> build(std::vector<VocabEntry> entries, const std::string& source);

  /// Adds a token; false where another one has the id.
  bool add(std::string_view token, int32_t id);

  [[nodiscard]] std::optional<int32_t> find(std::string_view token) const;
  /// Empty where no token has the id.
  [[nodiscard]] std::string_view token(int32_t id) const { return has(id) ? std::string_view(*tokens_[index(id)]) : ""; }
  [[nodiscard]] bool has(int32_t id) const {
    return id >= 0 && index(id) < tokens_.size() && tokens_[index(id)] != nullptr;
  }
  [[nodiscard]] size_t num_tokens() const { return ids_.size(); }
  [[nodiscard]] int32_t end_id() const { return static_cast<int32_t>(tokens_.size()); }

 private:
  static size_t index(int32_t id) { return static_cast<size_t>(id); }
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids_;
  std::vector<const std::string*> tokens_;  // keys of ids_, which do not move; null in holes
};

}  // namespace plimsoll::tokenizer
