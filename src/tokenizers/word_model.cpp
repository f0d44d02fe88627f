// Short words wait in a small queue while their cache lines are fetched; long ones have a cache of their own.
#include "tokenizers/word_model.h"

#include <fmt/format.h>

namespace plimsoll::tokenizers {

std::string WordModel::unknown_problem() const {
  return fmt::format("model.unk_token '{}' is not in model.vocab", unknown_token_.substr(0, 60));
}

void WordModel::encode_through_long_cache(std::string_view part, bool whole, const Vocabulary& vocabulary,
                                          ModelState& state) const {
  // Parts are the rarer ones and are not kept where whole words differ from them.
  if (part.size() > LongWordCache::kMaxBytes || (whole_words_differ_ && !whole))
    return encode_anew(part, whole, vocabulary, state);
  LongWordCache::Entry& entry = state.long_cache.entry(part);
  if (entry.word == part) {
    state.symbols.assign(entry.ids.begin(), entry.ids.end());
    return;
  }
  encode_anew(part, whole, vocabulary, state);
  if (state.unknown_failed) return;
  entry.word = part;
  entry.ids.assign(state.symbols.begin(), state.symbols.end());
}

void WordModel::encode_short(const ModelState::Waiting& word, const Vocabulary& vocabulary, ModelState& state,
                             std::vector<int32_t>& ids) const {
  if (const WordCache::Entry* entry = state.cache.find(word.key, word.hash)) {
    for (uint32_t i = 0; i < entry->num_ids; ++i) ids.push_back(entry->ids[i]);
    return;
  }
  encode_through_long_cache(WordCache::word_of(word.key), !WordCache::in_second_space(word.key), vocabulary,
                            state);
  ids.insert(ids.end(), state.symbols.begin(), state.symbols.end());
  if (state.symbols.size() <= WordCache::kMaxIds && !state.unknown_failed)
    state.cache.insert(word.key, word.hash, state.symbols);
}

void WordModel::finish(const Vocabulary& vocabulary, ModelState& state, std::vector<int32_t>& ids) const {
  for (size_t i = 0; i < state.num_waiting; ++i) encode_short(state.waiting[i], vocabulary, state, ids);
  state.num_waiting = 0;
}

void WordModel::take_part(std::string_view part, const char* readable_end, bool whole,
                          const Vocabulary& vocabulary, ModelState& state, std::vector<int32_t>& ids) const {
  if (part.size() <= WordCache::kMaxBytes) {
    ModelState::Waiting& word = state.waiting[state.num_waiting++];
    word.hash = WordCache::make_key(part, readable_end, whole_words_differ_ && !whole, word.key);
    state.cache.prefetch(word.hash);
    if (state.num_waiting == ModelState::kMostWaiting) finish(vocabulary, state, ids);
    return;
  }
  finish(vocabulary, state, ids);
  encode_through_long_cache(part, whole, vocabulary, state);
  ids.insert(ids.end(), state.symbols.begin(), state.symbols.end());
  if (state.symbols.capacity() > kLargeWord) state.symbols = {};
}

}  // namespace plimsoll::tokenizers
