// The parts of a Tokenizer, and the memory of concurrent calls.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tokenizers/added_tokens.h"
#include "tokenizers/decoder.h"
#include "tokenizers/normalizer.h"
#include "tokenizers/post_processor.h"
#include "tokenizers/pre_tokenizer.h"
#include "tokenizers/span.h"
#include "tokenizers/vocabulary.h"
#include "tokenizers/word_model.h"

namespace plimsoll::tokenizers {

struct TokenizerParts {
  /// Of one encode call; the cache in it lives on for the next.
  struct State {
    ModelState model = {};
    size_t num_bytes = 0;            // encoded so far
    std::thread::id last_user = {};  // whose processor's caches may still have it
    std::string repaired = {};
    std::string normalized = {};
    std::vector<Section> sections = {};
    std::vector<Section> inner_sections = {};
  };

  Vocabulary vocabulary;
  Normalizer normalizer;
  AddedTokens added;
  PreTokenizer pre_tokenizer;
  std::unique_ptr<const WordModel> model;
  PostProcessor post_processor;
  Decoder decoder;
  std::string source;
  std::vector<std::string>
      decoded_as;             ///< by id, of added tokens whose pattern is not their content; else empty
  std::vector<bool> special;  ///< by id
  uint64_t hash = 0;          ///< Tokenizer::vocabulary_hash

  [[nodiscard]] std::unique_ptr<State> take_state() const;
  void give_back(std::unique_ptr<State> state) const;
  /// `first`: the text starts here, and is not the rest of one that was cut.
  void encode_text(std::string_view text, bool first, State& state, std::vector<int32_t>& ids) const;
  /// For a piece of a text that is its first and last or not: calls `encode_one` where the text stands among
  /// the special tokens, `take_special` with those before (true) and behind it.
  template <typename EncodeOne, typename Special>
  void around_text(bool first, bool last, bool add_special_tokens, const EncodeOne& encode_one,
                   const Special& take_special) const;
  /// As encode_text, slower; `spans` as in Tokenizer::encode_with_spans.
  void encode_text_with_spans(std::string_view text, State& state, std::vector<int32_t>& ids,
                              std::vector<Span>& spans) const;
  [[nodiscard]] Error unknown_error() const;
  /// The token as decoders see it.
  [[nodiscard]] std::string_view decoded_token(int32_t id) const;

  mutable std::mutex mutex = {};
  mutable std::vector<std::unique_ptr<State>> idle = {};  // guarded by mutex
};

template <typename EncodeOne, typename Special>
void TokenizerParts::around_text(bool first, bool last, bool add_special_tokens, const EncodeOne& encode_one,
                                 const Special& take_special) const {
  const auto& pieces = post_processor.pieces();
  if (pieces.empty() || !add_special_tokens) return encode_one();
  bool before = true;
  for (const PostProcessor::Piece& piece : pieces) {
    if (piece.is_text) {
      encode_one();
      before = false;
    } else if (before ? first : last) {
      take_special(piece.ids, before);
    }
  }
}

}  // namespace plimsoll::tokenizers
