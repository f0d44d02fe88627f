// What a Tokenizer is made of, and the memory of the calls in flight.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "data/tokenizer/added_tokens.h"
#include "data/tokenizer/bpe_model.h"
#include "data/tokenizer/decoder.h"
#include "data/tokenizer/normalizer.h"
#include "data/tokenizer/post_processor.h"
#include "data/tokenizer/pre_tokenizer.h"
#include "data/tokenizer/vocabulary.h"

namespace plimsoll {

struct TokenizerParts {
  /// Of one encode call; the cache in it lives on for the next.
  struct State {
    tokenizer::ModelState model = {};
    std::string repaired = {};
    std::string normalized = {};
    std::vector<tokenizer::Section> sections = {};
    std::vector<tokenizer::Section> inner_sections = {};
  };

  tokenizer::Vocabulary vocabulary;
  tokenizer::Normalizer normalizer;
  tokenizer::AddedTokens added;
  tokenizer::PreTokenizer pre_tokenizer;
  tokenizer::BpeModel model;
  tokenizer::PostProcessor post_processor;
  tokenizer::Decoder decoder;
  std::string source;
  std::vector<std::string>
      decoded_as;             ///< by id, of added tokens whose pattern is not their content; else empty
  std::vector<bool> special;  ///< by id

  [[nodiscard]] std::unique_ptr<State> take_state() const;
  void give_back(std::unique_ptr<State> state) const;
  void encode_text(std::string_view text, State& state, std::vector<int32_t>& ids) const;
  /// The token as decoders see it.
  [[nodiscard]] std::string_view decoded_token(int32_t id) const;

  mutable std::mutex mutex = {};
  mutable std::vector<std::unique_ptr<State>> idle = {};  // guarded by mutex
};

}  // namespace plimsoll
