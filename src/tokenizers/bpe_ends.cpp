// Finds the token boundaries within a word: a walk over its characters by the widths of the tokens. What is
// left of a character that has no token is taken with care, everything else is as wide as its spelling.
#include <algorithm>

#include "tokenizers/bpe_model.h"

namespace plimsoll::tokenizers {

/// In bytes of the word.
size_t BpeModel::token_width(int32_t id, const Vocabulary& vocabulary) const {
  const std::string_view token = vocabulary.token(id);
  if (!byte_level_) return token.size();
  return static_cast<size_t>(std::count_if(token.begin(), token.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;  // a character each
  }));
}

void BpeModel::append_ends(std::string_view word, std::span<const int32_t> ids, const Vocabulary& vocabulary,
                           std::vector<size_t>& ends) const {
  size_t at = 0;
  size_t char_end = 0;  // of the character whose bytes are tokens of their own
  const auto unit_at = [&] {
    return at < word.size() ? unit(next(word.data() + at).code_point) : Unit::kKnown;
  };
  const auto skip = [&] { at += static_cast<size_t>(next(word.data() + at).length); };
  for (const int32_t id : ids) {
    const bool unknown = has_unknown_ && id == unknown_id_;
    if (at >= char_end) {
      // An unknown token may come behind the bytes of the characters after it.
      while (unit_at() == Unit::kDropped || (unit_at() == Unit::kUnknown && !unknown)) skip();
    }
    if (at < char_end) {
      ++at;
    } else if (const Unit kind = unit_at(); kind == Unit::kUnknown) {
      do skip();
      while (fuse_unknown_ && unit_at() == Unit::kUnknown);
    } else if (kind == Unit::kBytes && !unknown) {
      char_end = at + static_cast<size_t>(next(word.data() + at).length);
      ++at;
    } else if (!unknown || word.substr(at).starts_with(unknown_token_)) {
      for (size_t width = token_width(id, vocabulary); width > 0 && at < word.size();) {
        while (unit_at() == Unit::kDropped) skip();
        const size_t start = at;
        if (at < word.size()) skip();
        width -= std::min(width, at - start);
      }
    }
    at = std::min(at, word.size());
    ends.push_back(at);
  }
}

}  // namespace plimsoll::tokenizers
