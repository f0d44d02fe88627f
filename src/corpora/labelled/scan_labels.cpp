// The labels of files that have not been tokenized: each line is parsed, and nothing of it is kept.
#include <algorithm>
#include <utility>

#include "corpora/labelled/resolve_labels.h"
#include "corpora/record_reader.h"

namespace plimsoll::corpora {

Result<LabelSummary> scan_labels(std::span<const std::string> paths, const LabelledFormat& format,
                                 OnError on_error, int64_t most) {
  ReaderOptions reading;
  reading.on_error = on_error;
  PLIMSOLL_ASSIGN(const auto reader, RecordReader::open(paths, reading));
  LabelSummary found;
  std::string bytes;
  LabelledExample example;
  for (Record record;;) {
    bytes.clear();
    PLIMSOLL_ASSIGN(const bool more, reader->next(bytes, record));
    if (!more || (most > 0 && found.examples == most)) return found;
    example.file = reader->files()[record.file];
    example.line = record.line;
    if (auto bad = parse_labelled_example(bytes, format, example)) {
      if (on_error == OnError::kFail) return std::move(bad->error);
      continue;
    }
    found.add(example.label.kind, example.label.values);
    const bool named = example.label.kind == RawLabelKind::kName;
    if (named && static_cast<int64_t>(found.all_names.size()) <= io::kMaxLabels)
      found.all_names.insert(example.label.name);
  }
}

}  // namespace plimsoll::corpora
