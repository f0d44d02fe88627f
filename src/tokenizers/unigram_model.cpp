// Viterbi's algorithm over the characters of a word: for each end the best piece that ends there, found from
// the left to the right. Of equal sums the first found counts, and sums are added from the left, as the
// package does it, so that ties and roundings are its own. Time per word goes with its length times the
// longest piece's.
#include "tokenizers/unigram_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "tokenizers/unicode.h"

namespace plimsoll::tokenizers {

namespace {

size_t utf8_size(uint32_t c) { return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4; }

}  // namespace

Result<UnigramModel> UnigramModel::build(const Document& document, const Field& model,
                                         const Vocabulary& vocabulary) {
  constexpr double kUnknownPenalty = 10;
  UnigramModel result;
  PLIMSOLL_ASSIGN(result.byte_fallback_, model.member("byte_fallback").boolean_or(false));
  const auto size = static_cast<int64_t>(document.vocab.size());
  if (const Field unknown = model.member("unk_id"); !unknown.absent()) {
    PLIMSOLL_ASSIGN(const int64_t id, unknown.integer(0, INT64_MAX));
    if (id >= size) return unknown.error(fmt::format("is {}, but model.vocab has {} pieces", id, size));
    result.unknown_id_ = static_cast<int32_t>(id);
    result.unknown_token_ = document.vocab[static_cast<size_t>(id)].token;
  }
  size_t num_bytes = 0;
  for (const VocabEntry& entry : document.vocab) num_bytes += entry.token.size();
  if (num_bytes > PieceTrie::kMostBytes)
    return model.member("vocab").error(fmt::format(
        "has pieces of {} bytes together, more than the {} allowed", num_bytes, PieceTrie::kMostBytes));
  double least = std::numeric_limits<double>::infinity();
  result.scores_.reserve(document.vocab.size());
  for (const VocabEntry& entry : document.vocab) {
    result.trie_.add(entry.token, static_cast<int32_t>(entry.id));
    result.scores_.push_back(entry.score);
    least = std::min(least, entry.score);
  }
  result.trie_.seal();
  result.unknown_score_ = least - kUnknownPenalty;
  result.byte_ids_.assign(256, -1);
  if (result.byte_fallback_)
    for (unsigned byte = 0; byte < 256; ++byte)
      result.byte_ids_[byte] = vocabulary.find_in_model(fmt::format("<0x{:02X}>", byte)).value_or(-1);
  return result;
}

/// False where an unknown token is needed and there is none.
bool UnigramModel::find_best(std::string_view word, WordLattice& lattice) const {
  std::vector<uint32_t>& chars = lattice.chars;
  std::vector<BestPiece>& best = lattice.best;
  chars.resize(word.size());
  size_t count = 0;
  for (size_t at = 0; at < word.size();) {
    const CodePoint c = decode(word.data() + at);
    at += static_cast<size_t>(c.length);
    chars[count++] = c.value;
  }
  chars.resize(count);
  best.assign(chars.size() + 1, {});
  const auto offer = [&best](size_t end, size_t begin, int32_t id, double score) {
    BestPiece& before = best[end];
    if (before.size != 0 && !(score > before.score)) return false;
    before = {score, static_cast<uint32_t>(end - begin), id};
    return true;
  };
  for (size_t begin = 0; begin < chars.size(); ++begin) {
    const double score = best[begin].score;
    PieceTrie::Step step = trie_.step(PieceTrie::kRoot, chars[begin]);
    const bool known = step.id >= 0;
    if (known) offer(begin + 1, begin, step.id, scores_[static_cast<size_t>(step.id)] + score);
    for (size_t at = begin + 1; at < chars.size() && step.node != PieceTrie::kNone; ++at) {
      step = trie_.step(step.node, chars[at]);
      if (step.id >= 0) offer(at + 1, begin, step.id, scores_[static_cast<size_t>(step.id)] + score);
    }
    if (!known && offer(begin + 1, begin, unknown_id_, unknown_score_ + score) && unknown_id_ < 0)
      return false;
  }
  return true;
}

/// A run of unknown characters: a piece that lost against them, its bytes, or the unknown token.
template <typename Take>
void UnigramModel::take_unknown(std::string_view word, size_t begin, size_t end, const Take& take) const {
  const std::string_view run = word.substr(begin, end - begin);
  const auto byte_id = [this](char byte) { return byte_ids_[static_cast<unsigned char>(byte)]; };
  if (const int32_t id = trie_.id_of(run); id >= 0)
    take(end, id);
  else if (byte_fallback_ && std::all_of(run.begin(), run.end(), [&](char b) { return byte_id(b) >= 0; }))
    for (size_t at = end; at > begin; --at) take(at, byte_id(word[at - 1]));
  else
    take(end, unknown_id_);
}

template <typename Take>
void UnigramModel::each_token(std::string_view word, const WordLattice& lattice, const Take& take) const {
  const std::vector<uint32_t>& chars = lattice.chars;
  const std::vector<BestPiece>& best = lattice.best;
  size_t end_byte = word.size();
  for (size_t end = chars.size(); end > 0;) {
    const int32_t id = best[end].id;
    size_t begin = end - best[end].size;
    if (id == unknown_id_)
      while (begin > 0 && best[begin].id == unknown_id_) begin -= best[begin].size;
    size_t begin_byte = end_byte;
    for (size_t at = begin; at < end; ++at) begin_byte -= utf8_size(chars[at]);
    if (id != unknown_id_)
      take(end_byte, id);
    else
      take_unknown(word, begin_byte, end_byte, take);
    end = begin;
    end_byte = begin_byte;
  }
}

void UnigramModel::encode_anew(std::string_view word, bool /*whole*/, const Vocabulary& /*vocabulary*/,
                               ModelState& state) const {
  state.symbols.clear();
  if (find_best(word, state.lattice)) {
    each_token(word, state.lattice, [&](size_t, int32_t id) { state.symbols.push_back(id); });
    std::reverse(state.symbols.begin(), state.symbols.end());
  } else {
    state.unknown_failed = true;
  }
  if (state.lattice.best.capacity() > kLargeWord) state.lattice = {};
}

void UnigramModel::encode_word(std::string_view word, const char* readable_end, const Vocabulary& vocabulary,
                               ModelState& state, std::vector<int32_t>& ids) const {
  take_part(word, readable_end, true, vocabulary, state, ids);
}

/// The ids do not tell how many characters an unknown token has, so the word is taken apart once more.
void UnigramModel::append_ends(std::string_view word, std::span<const int32_t> /*ids*/,
                               const Vocabulary& /*vocabulary*/, std::vector<size_t>& ends) const {
  WordLattice lattice;
  if (!find_best(word, lattice)) return;
  const auto before = static_cast<std::ptrdiff_t>(ends.size());
  each_token(word, lattice, [&](size_t end, int32_t) { ends.push_back(end); });
  std::reverse(ends.begin() + before, ends.end());
}

}  // namespace plimsoll::tokenizers
