#include "corpora/token_batch.h"

#include <utility>

#include "corpora/batch_memory.h"
#include "corpora/parse_example.h"

namespace plimsoll::corpora {
namespace {

constexpr size_t kBatchRecords = 4096;

}  // namespace

void TokenBatch::reset() {
  empty(bytes);
  empty(records);
  empty(ids);
  empty(in_loss);
  empty(documents);
  skipped = {};
  remarks = {};
  error.reset();
}

bool fill(TokenBatch& batch, ExampleReader& reader) {
  RecordReader& records = reader.records();
  bool more = true;
  while (more && batch.bytes.size() < kTextBatchBytes && batch.records.size() < kBatchRecords) {
    Record record;
    Result<bool> found = records.next(batch.bytes, record);
    more = found && *found;
    if (more) batch.records.push_back(record);
    if (!found) batch.error = std::move(found).error();
  }
  batch.skipped.add(records.take_skipped());
  batch.bytes_read = reader.bytes_read();
  batch.num_files = records.num_files_begun();
  return more;
}

void BatchEncoder::run(TokenBatch& batch) {
  const ReaderOptions& options = reader_.options();
  for (const Record& record : batch.records) {
    batch.remarks.invalid.look_at(std::string_view(batch.bytes).substr(record.begin, record.size),
                                  reader_.files()[record.file], record.place());
    std::optional<BadExample> bad =
        to_example(batch.bytes, record, reader_.files(), options.text_key, example_);
    if (!bad) bad = encoder_.encode(example_, scratch_, encoded_);
    if (bad && (options.on_error == OnError::kFail || bad->error.code != ErrorCode::kBadData)) {
      batch.error = std::move(bad->error);
      break;
    }
    if (bad) {
      batch.skipped.add(bad->reason);
      if (record.is_json) continue;
      encoded_ = {};
    }
    batch.remarks.add(encoded_.remarks);
    add(batch, record.continues);
  }
  tidy();
}

void BatchEncoder::add(TokenBatch& batch, bool continues) const {
  const size_t before = batch.ids.size();
  batch.ids.insert(batch.ids.end(), encoded_.ids.begin(), encoded_.ids.end());
  const bool all = encoded_.in_loss.empty();
  if (!all) {
    batch.in_loss.resize(before, 1);
    batch.in_loss.insert(batch.in_loss.end(), encoded_.in_loss.begin(), encoded_.in_loss.end());
  }
  size_t begin = before;
  for (size_t i = 0; i + 1 < encoded_.ends.size(); ++i) {
    batch.documents.push_back({begin, before + encoded_.ends[i], all, false, /*is_part=*/true});
    begin = before + encoded_.ends[i];
  }
  batch.documents.push_back({begin, batch.ids.size(), all, continues});
}

void BatchEncoder::tidy() {
  for (std::string* text : {&example_.text, &example_.completion, &example_.record, &example_.prompt_record,
                            &scratch_.joined, &scratch_.chat.text, &scratch_.prompt_chat.text})
    empty(*text);
  empty(encoded_.ids);
  empty(encoded_.in_loss);
  empty(encoded_.ends);
  empty(scratch_.ends);
}

}  // namespace plimsoll::corpora
