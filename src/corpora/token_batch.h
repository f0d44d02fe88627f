// A batch of records on its way through tokenize_files: read, encoded, handed on, used again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "corpora/example_encoder.h"
#include "corpora/example_reader.h"
#include "corpora/record_reader.h"

namespace plimsoll::corpora {

struct TokenBatch {
  struct Document {
    size_t begin = 0, end = 0;  ///< in ids
    bool all_in_loss = true;
    bool continues = false;
    bool is_part = false;  ///< of a packed row, whose next document follows
  };

  // What was read.
  std::string bytes = {};
  std::vector<Record> records = {};
  int64_t bytes_read = 0;  ///< of the files so far, as they lie on the disk
  size_t num_files = 0;    ///< begun so far
  // What became of it.
  std::vector<int32_t> ids = {};
  std::vector<uint8_t> in_loss =
      {};  ///< empty or, up to the last document that is not all in the loss, one an id
  std::vector<Document> documents = {};
  SkipCounts skipped = {};
  EncodingRemarks remarks = {};
  std::optional<Error> error = {};  ///< behind the documents

  /// Empties it; unusually much memory is given back.
  void reset();
};

/// Appends records to an empty batch until it has enough; false where nothing comes behind them, because the
/// files end or because of batch.error.
bool fill(TokenBatch& batch, ExampleReader& reader);

/// Makes documents of a batch's records. One thread's own: its memory is used from batch to batch.
class BatchEncoder {
 public:
  /// Both outlive it; of the reader only what does not change is looked at.
  BatchEncoder(const ExampleReader& reader, const ExampleEncoder& encoder)
      : reader_(reader), encoder_(encoder) {}
  /// Stops at the first example that may not be passed over: batch.error then says why.
  void run(TokenBatch& batch);

 private:
  void add(TokenBatch& batch, bool continues) const;
  void tidy();
  const ExampleReader& reader_;
  const ExampleEncoder& encoder_;
  Example example_ = {};
  ExampleEncoder::Scratch scratch_ = {};
  EncodedExample encoded_ = {};
};

}  // namespace plimsoll::corpora
