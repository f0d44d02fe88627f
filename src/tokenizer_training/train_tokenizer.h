// A tokenizer from people's files: their words are counted on several threads, then merged into a vocabulary
// (bpe_trainer.h).
//
//   files ─► batches of records, each thread reads its own in turn ─► parse, normalize, cut ─► its word
//   counts word counts of all threads ─► one ─► merges ─► tokenizer.json
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "corpora/example.h"
#include "corpora/invalid_utf8.h"

namespace plimsoll::tokenizer_training {

/// How far a training is: first the files are read, then tokens are made.
struct TrainingProgress {
  bool merging = false;
  int64_t bytes_read = 0, total_bytes = 0;  ///< of the files as they lie on the disk
  int64_t text_bytes = 0;                   ///< unpacked
  int64_t num_tokens = 0;                   ///< merging: so far
};

struct TokenizerTraining {
  std::vector<std::string> inputs = {};  ///< files or patterns, as ExampleReader::open takes them
  std::string text_key = {};
  corpora::OnError on_error = corpora::OnError::kFail;
  int64_t vocab_size = 0;  ///< special tokens and the 256 bytes count
  int64_t min_frequency = 2;
  std::vector<std::string> special_tokens = {};  ///< become the first ids
  std::string pre_tokenizer = "gpt2";            ///< tokenizer::pre_tokenizer_names()
  int num_threads = 1;
  std::function<void(const TrainingProgress&)> progress = {};  ///< now and then, on the caller's thread
  std::function<bool()> stop = {};  ///< asked often, on any thread; true ends with kInterrupted
};

struct TrainedTokenizer {
  std::string tokenizer_json;
  std::string config_json;  ///< tokenizer_config.json
  int64_t vocab_size = 0;
  int64_t num_merges = 0;
  int64_t num_files = 0, num_examples = 0;
  int64_t text_bytes = 0;
  int64_t num_words = 0, num_different_words = 0;
  corpora::SkipCounts skipped = {};
  corpora::InvalidUtf8 invalid = {};  ///< bytes that are no UTF-8, of the files
};

/// Of a conversation the messages' texts count, of a completion both parts, each as a text of its own.
/// Special tokens that stand in the text are text. Memory: goes with the number of different words, not with
/// the size of the files. Determinism: does not depend on the number of threads. Errors: kInvalidArgument for
/// a vocabulary that has no room for the bytes and the special tokens, for special tokens that are empty or
/// given twice, for an unknown pre-tokenizer; kBadData and kIo of the files (kBadData where they hold no
/// word, kIo where a thread cannot be started); kInterrupted.
Result<TrainedTokenizer> train_tokenizer(const TokenizerTraining& training);

/// Writes both files into a folder, which is made where it is not there. Both are on the disk before either
/// has its name. Errors: kIo.
Status write_tokenizer(const TrainedTokenizer& trained, const std::string& directory);

}  // namespace plimsoll::tokenizer_training
