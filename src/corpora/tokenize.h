// Files to tokens on several threads, in the files' order and with memory that does not depend on them.
//
//   one thread at a time: records ─► a batch ─► the same thread: parse, render, encode
//                                       ▲                        │ in the batches' order, one at a time
//                                       └──── free again ◄──── sink
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/result.h"
#include "corpora/example_encoder.h"
#include "corpora/example_reader.h"
#include "corpora/tokenizing_memory.h"

namespace plimsoll::corpora {

/// What was done so far, or in all.
struct TokenizeCounts {
  int64_t num_files = 0;
  int64_t num_examples = 0;   ///< lines, elements, text files
  int64_t num_documents = 0;  ///< those that have tokens
  int64_t num_empty = 0;      ///< examples without a token, which are left out
  int64_t num_tokens = 0;
  int64_t num_targets = 0;  ///< tokens in the loss that are not the first of their document
  int64_t text_bytes = 0;   ///< unpacked, as read
  int64_t bytes_read = 0;   ///< of the files as they lie on the disk
  int64_t total_bytes = 0;
  SkipCounts skipped = {};
  EncodingRemarks remarks = {};
};

/// Takes the documents in order, one call at a time, each from any of the threads. `in_loss` is empty where
/// all tokens are targets; `continues`: the next call brings the same document's next piece, which may be
/// empty.
using TokenSink =
    std::function<Status(std::span<const int32_t> ids, std::span<const uint8_t> in_loss, bool continues)>;

struct TokenizeOptions {
  /// Ends behind so many documents, as if the files did; 0: all. A few more examples may have been looked at.
  int64_t max_documents = 0;
  int num_threads = 1;  ///< in all, the caller's among them
  /// What the process may hold of memory, as far as that is bounded: fewer threads work then. 0: no bound.
  int64_t budget_bytes = 0;
  BudgetName budget_name = {};
  std::function<void(const TokenizeCounts&)> progress = {};  ///< a few times a second, on the caller's thread
  std::function<bool()> stop = {};  ///< asked often, on the caller's thread; true ends with kInterrupted
};

/// Reads, encodes and hands to `sink`. The reader's on_error decides about bad examples.
/// Determinism: the calls of `sink`, the counts and the error do not depend on the number of threads.
/// Errors: as tokenizing_memory; kBadData of the first bad example, whatever sink says, kInterrupted, kIo
/// (also where a thread cannot be started).
Result<TokenizeCounts> tokenize_files(ExampleReader& reader, const ExampleEncoder& encoder,
                                      const TokenSink& sink, const TokenizeOptions& options);

}  // namespace plimsoll::corpora
