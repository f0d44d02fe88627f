// The module for Parquet and Arrow files: Arrow's C++ library behind the few C functions of
// corpora/column_module.h. A batch of rows is read at a time, on the caller's thread.
#include <arrow/api.h>
#include <arrow/io/api.h>
#include <arrow/ipc/api.h>
#include <parquet/arrow/reader.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "columnar/column_types.h"
#include "columnar/json_rows.h"
#include "corpora/column_module.h"

namespace {

using plimsoll::columnar::append_row;
using plimsoll::columnar::unread_part;

constexpr int64_t kRowsAtOnce = 256;       // of Parquet, whose row groups may have millions
constexpr size_t kTextBytes = 256 << 10;   // handed out at once, at least
constexpr int64_t kBufferBytes = 1 << 20;  // of a Parquet column that is read

}  // namespace

struct PlimsollColumns {
  std::shared_ptr<arrow::io::ReadableFile> file = {};
  int64_t file_bytes = 0;
  std::unique_ptr<parquet::arrow::FileReader> parquet = {};
  std::shared_ptr<arrow::RecordBatchReader> batches = {};  ///< of Parquet and of a stream
  std::shared_ptr<arrow::ipc::RecordBatchFileReader> ipc = {};
  int next_batch = 0;  ///< of ipc
  int64_t num_rows = 0, rows_done = 0;
  std::vector<std::string> wanted = {};
  bool has_unread_type = false;  ///< of a column that is wanted
  std::shared_ptr<arrow::RecordBatch> batch = {};
  int64_t row = 0;
  std::string text = {};
  std::string features = {};
};

namespace {

bool is_wanted(const PlimsollColumns& f, const std::string& name) {
  return std::find(f.wanted.begin(), f.wanted.end(), name) != f.wanted.end();
}

/// That what is wanted has a spelling in JSON.
arrow::Status check_types(PlimsollColumns& f, const arrow::Schema& schema) {
  for (const auto& field : schema.fields()) {
    if (!is_wanted(f, field->name())) continue;
    const std::string part = unread_part(*field);
    f.has_unread_type = !part.empty();
    if (f.has_unread_type) return arrow::Status::NotImplemented("it has the column ", part);
  }
  return arrow::Status::OK();
}

/// What datasets wrote of the columns beside them.
void take_features(PlimsollColumns& f, const std::shared_ptr<const arrow::KeyValueMetadata>& metadata) {
  const int at = metadata == nullptr ? -1 : metadata->FindKey("huggingface");
  if (at >= 0) f.features = metadata->value(at);
}

/// The leaves of the columns that are wanted; all where there is none such.
std::vector<int> wanted_leaves(const PlimsollColumns& f, const parquet::SchemaDescriptor& schema) {
  std::vector<int> leaves, all;
  for (int i = 0; i < schema.num_columns(); ++i) {
    all.push_back(i);
    if (is_wanted(f, schema.GetColumnRoot(i)->name())) leaves.push_back(i);
  }
  return leaves.empty() ? all : leaves;
}

arrow::Status open_parquet(PlimsollColumns& f) {
  parquet::ReaderProperties reading = parquet::default_reader_properties();
  reading.enable_buffered_stream();
  reading.set_buffer_size(kBufferBytes);
  parquet::ArrowReaderProperties properties(/*use_threads=*/false);
  properties.set_batch_size(kRowsAtOnce);
  properties.set_pre_buffer(false);
  properties.set_arrow_extensions_enabled(true);  // JSON is JSON, as for pyarrow
  parquet::arrow::FileReaderBuilder builder;
  ARROW_RETURN_NOT_OK(builder.Open(f.file, reading));
  builder.properties(properties);
  ARROW_ASSIGN_OR_RAISE(f.parquet, builder.Build());
  const auto metadata = f.parquet->parquet_reader()->metadata();
  f.num_rows = metadata->num_rows();
  take_features(f, metadata->key_value_metadata());
  std::vector<int> groups(static_cast<size_t>(metadata->num_row_groups()));
  for (size_t i = 0; i < groups.size(); ++i) groups[i] = static_cast<int>(i);
  ARROW_ASSIGN_OR_RAISE(f.batches,
                        f.parquet->GetRecordBatchReader(groups, wanted_leaves(f, *metadata->schema())));
  return check_types(f, *f.batches->schema());
}

arrow::Status open_file(PlimsollColumns& f, const char* path) {
  ARROW_ASSIGN_OR_RAISE(f.file, arrow::io::ReadableFile::Open(path));
  ARROW_ASSIGN_OR_RAISE(f.file_bytes, f.file->GetSize());
  ARROW_ASSIGN_OR_RAISE(const auto start, f.file->ReadAt(0, 8));
  const std::string_view magic(*start);
  if (magic.starts_with("PAR1")) return open_parquet(f);
  arrow::ipc::IpcReadOptions options = arrow::ipc::IpcReadOptions::Defaults();
  options.use_threads = false;
  if (magic.starts_with("ARROW1")) {
    ARROW_ASSIGN_OR_RAISE(f.ipc, arrow::ipc::RecordBatchFileReader::Open(f.file, options));
    take_features(f, f.ipc->schema()->metadata());
    return check_types(f, *f.ipc->schema());
  }
  ARROW_RETURN_NOT_OK(f.file->Seek(0));
  ARROW_ASSIGN_OR_RAISE(f.batches, arrow::ipc::RecordBatchStreamReader::Open(f.file, options));
  take_features(f, f.batches->schema()->metadata());
  return check_types(f, *f.batches->schema());
}

/// The batch with the columns that are wanted; all where there is none such.
arrow::Result<std::shared_ptr<arrow::RecordBatch>> narrowed(const PlimsollColumns& f,
                                                            std::shared_ptr<arrow::RecordBatch> batch) {
  std::vector<int> columns;
  for (int i = 0; i < batch->num_columns(); ++i)
    if (is_wanted(f, batch->column_name(i))) columns.push_back(i);
  return columns.empty() ? batch : batch->SelectColumns(columns);
}

/// The next batch into f.batch; null at the end.
arrow::Status next_batch(PlimsollColumns& f) {
  f.row = 0;
  f.batch.reset();
  if (f.ipc != nullptr) {
    if (f.next_batch == f.ipc->num_record_batches()) return arrow::Status::OK();
    ARROW_ASSIGN_OR_RAISE(f.batch, f.ipc->ReadRecordBatch(f.next_batch++));
  } else {
    ARROW_RETURN_NOT_OK(f.batches->ReadNext(&f.batch));
    if (f.batch == nullptr) return arrow::Status::OK();
  }
  ARROW_ASSIGN_OR_RAISE(f.batch, narrowed(f, f.batch));
  // Offsets and lengths of an Arrow file are whatever it says.
  return f.batch->ValidateFull();
}

arrow::Status next_text(PlimsollColumns& f) {
  f.text.clear();
  while (f.text.size() < kTextBytes) {
    if (f.batch == nullptr || f.row == f.batch->num_rows()) {
      ARROW_RETURN_NOT_OK(next_batch(f));
      if (f.batch == nullptr) return arrow::Status::OK();
      continue;
    }
    append_row(*f.batch, f.row++, f.text);
    ++f.rows_done;
  }
  return arrow::Status::OK();
}

/// Runs what may throw; false, with the words, where it fails.
template <typename Work>
bool guarded(char* error, size_t error_bytes, Work work) {
  std::string what;
  try {
    const arrow::Status status = work();
    if (status.ok()) return true;
    what = status.message();
  } catch (const std::exception& exception) {
    what = exception.what();
  }
  std::snprintf(error, error_bytes, "%s", what.c_str());
  return false;
}

PlimsollColumns* open_columns(const char* path, const char* const* wanted, size_t num_wanted, int* is_type,
                              char* error, size_t error_bytes) {
  auto f = std::make_unique<PlimsollColumns>();
  const bool opened = guarded(error, error_bytes, [&] {
    f->wanted.assign(wanted, wanted + num_wanted);
    return open_file(*f, path);
  });
  *is_type = f->has_unread_type ? 1 : 0;
  return opened ? f.release() : nullptr;
}

int next_rows(PlimsollColumns* f, const char** text, size_t* size, char* error, size_t error_bytes) {
  if (!guarded(error, error_bytes, [&] { return next_text(*f); })) return -1;
  *text = f->text.data();
  *size = f->text.size();
  return f->text.empty() ? 0 : 1;
}

void tell_progress(const PlimsollColumns* f, int64_t* done, int64_t* total) {
  const bool by_rows = f->parquet != nullptr;
  const auto at = by_rows ? arrow::Result<int64_t>(f->rows_done) : f->file->Tell();
  *total = by_rows ? f->num_rows : f->file_bytes;
  if (f->ipc != nullptr) {
    *total = f->ipc->num_record_batches();
    *done = f->next_batch;
    return;
  }
  *done = at.ok() ? std::min(*at, *total) : 0;
}

const char* features_of(const PlimsollColumns* f) { return f->features.c_str(); }

void close_columns(PlimsollColumns* f) { delete f; }

}  // namespace

extern "C" __attribute__((visibility("default"))) const PlimsollColumnsModule* plimsoll_columns_module() {
  static const PlimsollColumnsModule module = {kPlimsollColumnsVersion, open_columns, next_rows,
                                               tell_progress,           features_of,  close_columns};
  return &module;
}
