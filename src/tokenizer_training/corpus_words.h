// The words of files, counted on several threads. Whoever is free reads the next batch of records and works
// on it alone, so there is nothing to hand over.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "corpora/example_reader.h"
#include "corpora/invalid_utf8.h"
#include "tokenizer_training/word_counts.h"
#include "tokenizers/normalizer.h"
#include "tokenizers/pre_tokenizer.h"

namespace plimsoll::tokenizer_training {

struct CorpusWords {
  WordCounts words = {};
  int64_t num_examples = 0;
  int64_t num_words = 0;
  int64_t text_bytes = 0;
  corpora::SkipCounts skipped = {};
  corpora::InvalidUtf8 invalid = {};
};

/// `glance` is called on the caller's thread after each of its batches with the bytes of text so far; false
/// stops. Determinism: counts and errors do not depend on the number of threads, the order of the words does.
/// Errors: those of the reader, the first in the order of the files; kInterrupted.
Result<CorpusWords> count_words(corpora::ExampleReader& reader, const tokenizers::Normalizer& normalizer,
                                const tokenizers::PreTokenizer& pre_tokenizer, int num_threads,
                                const std::function<bool(int64_t text_bytes)>& glance);

}  // namespace plimsoll::tokenizer_training
