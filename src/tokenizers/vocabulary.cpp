// The maps own the strings, the list by id points at them.
#include "tokenizers/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>

namespace plimsoll::tokenizers {

Result<Vocabulary> Vocabulary::build(const Document& document, const std::string& source) {
  const std::vector<VocabEntry>& entries = document.vocab;
  const auto error = [&](const VocabEntry& entry, std::string_view what) {
    return Error{ErrorCode::kBadData,
                 fmt::format("model.vocab['{}'] is {}, {}", entry.token.substr(0, 60), entry.id, what),
                 source,
                 {}};
  };
  // Holes are legitimate, a list of all ids below a hostile one would not be.
  const int64_t limit = 16 * static_cast<int64_t>(entries.size()) + 65536;
  Vocabulary vocabulary;
  vocabulary.ids_.reserve(entries.size());
  vocabulary.tokens_.reserve(entries.size());
  for (const VocabEntry& entry : entries) {
    if (entry.id < 0 || entry.id >= limit)
      return error(
          entry, fmt::format("expected an id from 0 to {} in a vocabulary of {}", limit - 1, entries.size()));
    const int32_t id = static_cast<int32_t>(entry.id);
    if (!document.has_scores && vocabulary.find_in_model(entry.token))
      return error(entry, "but the token stands twice");
    if (!vocabulary.add_to(vocabulary.ids_, entry.token, id))
      return error(entry, fmt::format("the id of '{}' as well", vocabulary.token(id).substr(0, 60)));
  }
  vocabulary.num_tokens_ = entries.size();
  return vocabulary;
}

bool Vocabulary::add_to(Map& map, std::string_view token, int32_t id) {
  if (has(id)) return token == this->token(id);
  if (at(id) >= tokens_.size()) tokens_.resize(at(id) + 1);
  max_token_bytes_ = std::max(max_token_bytes_, token.size());
  tokens_[at(id)] = &map.insert_or_assign(std::string(token), id).first->first;
  return true;
}

std::optional<int32_t> Vocabulary::find_in(const Map& map, std::string_view token) {
  const auto at = map.find(token);
  if (at == map.end()) return std::nullopt;
  return at->second;
}

std::optional<int32_t> Vocabulary::find(std::string_view token) const {
  const auto id = find_in_model(token);
  return id ? id : find_in(added_ids_, token);
}

}  // namespace plimsoll::tokenizers
