// Tokens that continue a word lie in the trie below their prefix, so a match inside a word starts there.
#include "tokenizers/word_piece_model.h"

#include <fmt/format.h>

#include <algorithm>

namespace plimsoll::tokenizers {

Result<WordPieceModel> WordPieceModel::build(const Document& document, const Field& model,
                                             const Vocabulary& vocabulary) {
  WordPieceModel result;
  PLIMSOLL_ASSIGN(result.unknown_token_, model.member("unk_token").string());
  PLIMSOLL_ASSIGN(const std::string prefix, model.member("continuing_subword_prefix").string());
  PLIMSOLL_ASSIGN(const int64_t most, model.member("max_input_chars_per_word").integer(0, kMostWordChars));
  result.max_word_chars_ = static_cast<size_t>(most);
  result.prefix_bytes_ = prefix.size();
  result.unknown_id_ = vocabulary.find_in_model(result.unknown_token_).value_or(-1);
  size_t num_bytes = 0;
  for (const VocabEntry& entry : document.vocab) num_bytes += entry.token.size();
  if (num_bytes > TokenTrie::kMostBytes)
    return model.member("vocab").error(fmt::format(
        "has tokens of {} bytes together, more than the {} allowed", num_bytes, TokenTrie::kMostBytes));
  result.trie_ = TokenTrie(num_bytes);
  for (const VocabEntry& entry : document.vocab)
    result.trie_.add(entry.token, static_cast<int32_t>(entry.id));
  result.continuing_ = result.trie_.find(prefix);
  return result;
}

bool WordPieceModel::is_too_long(std::string_view word) const {
  if (word.size() <= max_word_chars_) return false;
  if (word.size() > 4 * max_word_chars_) return true;
  const auto starts_char = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; };
  return static_cast<size_t>(std::count_if(word.begin(), word.end(), starts_char)) > max_word_chars_;
}

/// False where no token fits at some place.
bool WordPieceModel::append_pieces(std::string_view word, std::vector<int32_t>& ids) const {
  for (size_t start = 0; start < word.size();) {
    uint32_t node = start == 0 ? TokenTrie::kRoot : continuing_;
    int32_t id = -1;
    size_t end = start;
    for (size_t at = start; at < word.size() && node != TokenTrie::kNone;) {
      node = trie_.child(node, static_cast<unsigned char>(word[at++]));
      if (node == TokenTrie::kNone || trie_.id(node) < 0) continue;
      id = trie_.id(node);
      end = at;
    }
    if (id < 0) return false;
    ids.push_back(id);
    start = end;
  }
  return true;
}

void WordPieceModel::encode_anew(std::string_view word, bool /*whole*/, const Vocabulary& /*vocabulary*/,
                                 ModelState& state) const {
  state.symbols.clear();
  if (!is_too_long(word) && append_pieces(word, state.symbols)) return;
  state.symbols.clear();
  if (unknown_id_ < 0)
    state.unknown_failed = true;
  else
    state.symbols.push_back(unknown_id_);
}

void WordPieceModel::encode_word(std::string_view word, const char* readable_end,
                                 const Vocabulary& vocabulary, ModelState& state,
                                 std::vector<int32_t>& ids) const {
  take_part(word, readable_end, true, vocabulary, state, ids);
}

void WordPieceModel::append_ends(std::string_view word, std::span<const int32_t> ids,
                                 const Vocabulary& vocabulary, std::vector<size_t>& ends) const {
  size_t at = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    at += vocabulary.token(ids[i]).size() - (i == 0 ? 0 : prefix_bytes_);
    ends.push_back(ids.size() == 1 ? word.size() : std::min(at, word.size()));
  }
}

}  // namespace plimsoll::tokenizers
