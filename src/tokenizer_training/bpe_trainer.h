// Training of byte pair encoding: of all pairs of neighbouring tokens the most frequent one becomes a token,
// again and again. The result is that of the `tokenizers` package's BpeTrainer for byte-level words, ties
// included.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer_training/word_counts.h"

namespace plimsoll::tokenizer_training {

struct BpeTrainerOptions {
  int64_t vocab_size = 0;     ///< special tokens and the 256 bytes count
  int64_t min_frequency = 2;  ///< smallest count of a pair that becomes a token
  std::vector<std::string> special_tokens = {};
  /// Told now and then, with the number of tokens so far; false stops the training.
  std::function<bool(int64_t num_tokens)> progress = {};
};

struct TrainedBpe {
  std::vector<std::string> tokens;                  ///< by id, bytes spelled in the alphabet of bytes
  std::vector<std::pair<int32_t, int32_t>> merges;  ///< by rank
  bool stopped = false;
};

/// Words are raw bytes. Tokens: the special ones, the 256 bytes, then what the merges make, most frequent
/// first; of equals the pair with the smaller left id, then the smaller right id. Memory: some 40 bytes for
/// each byte of the different words.
/// Determinism: depends on the words and their counts alone, not on their order.
/// Source: Sennrich et al. 2016, arXiv:1508.07909; the byte alphabet is GPT-2's.
TrainedBpe train_bpe(const WordCounts& words, const BpeTrainerOptions& options);

}  // namespace plimsoll::tokenizer_training
