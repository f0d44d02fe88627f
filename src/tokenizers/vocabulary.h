// Tokens by id and ids by token: the model's, and those added to them, which the model itself does not know.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/at.h"
#include "base/result.h"
#include "tokenizers/document.h"

namespace plimsoll::tokenizers {

class Vocabulary {
 public:
  /// Of a list with scores a token may stand twice, as in the package: the later id is then the token's, and
  /// both are read as it. Errors: kBadData for a token or an id that stands twice otherwise, for an id below
  /// 0 or far beyond the number of entries.
  static Result<Vocabulary> build(const Document& document, const std::string& source);

  /// Adds a token that is not the model's, or is; false where another one has the id.
  bool add(std::string_view token, int32_t id) { return add_to(added_ids_, token, id); }

  [[nodiscard]] std::optional<int32_t> find(std::string_view token) const;
  /// Among the model's own.
  [[nodiscard]] std::optional<int32_t> find_in_model(std::string_view token) const {
    return find_in(ids_, token);
  }
  /// Empty where no token has the id.
  [[nodiscard]] std::string_view token(int32_t id) const {
    return has(id) ? std::string_view(*tokens_[at(id)]) : "";
  }
  [[nodiscard]] bool has(int32_t id) const {
    return id >= 0 && at(id) < tokens_.size() && tokens_[at(id)] != nullptr;
  }
  [[nodiscard]] size_t num_tokens() const { return num_tokens_; }
  /// Whether two ids have the same token.
  [[nodiscard]] bool has_twins() const { return ids_.size() != num_tokens_; }
  [[nodiscard]] size_t max_token_bytes() const { return max_token_bytes_; }
  [[nodiscard]] int32_t end_id() const { return static_cast<int32_t>(tokens_.size()); }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  using Map = std::unordered_map<std::string, int32_t, Hash, std::equal_to<>>;
  static std::optional<int32_t> find_in(const Map& map, std::string_view token);
  bool add_to(Map& map, std::string_view token, int32_t id);

  Map ids_;
  Map added_ids_;
  std::vector<const std::string*> tokens_;  // keys of the maps, which do not move; null in holes
  size_t num_tokens_ = 0;
  size_t max_token_bytes_ = 0;
};

}  // namespace plimsoll::tokenizers
