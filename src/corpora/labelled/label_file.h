// The labels of a shard's documents as they stood in the lines, beside it as a file: which of them are
// classes, names or numbers is settled when all are known. Every byte is under a checksum, entries are looked
// up by position.
//
//   header | entries in blocks | JSON: the files that the lines are from, and the labels' names
//   entry:  kind u32 | file u32 | line u64 | f32 values, `width` of them (of a name: its index)
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "corpora/labelled/raw_label.h"
#include "datasets/shard_table.h"
#include "io/file.h"
#include "io/label_fields.h"

namespace plimsoll::corpora {

/// A label that was read back.
struct LabelEntry {
  RawLabelKind kind = RawLabelKind::kAbsent;
  uint32_t file = 0;  ///< index into LabelFile::files
  int64_t line = 0;
  std::span<const float> values = {};  ///< width() of them; of a name one, its index into LabelFile::names
};

/// Writes a label file. Memory: the names, 1 MiB.
class LabelFileWriter {
 public:
  /// `files`: those that the lines are from. Errors: kIo.
  static Result<LabelFileWriter> create(const std::string& path, std::vector<std::string> files);
  LabelFileWriter(LabelFileWriter&&) noexcept;
  LabelFileWriter& operator=(LabelFileWriter&&) noexcept;
  ~LabelFileWriter();

  /// The next document's. All labels are as long as the first. Errors: kBadData for one that is not, and for
  /// more than kMaxLabels names, with the place; kIo.
  Status add(const RawLabel& label, uint32_t file, int64_t line);
  /// Whether `add` would take it, with the error where it would not.
  [[nodiscard]] Status check(const RawLabel& label, uint32_t file, int64_t line) const;
  /// `shard_hash`: ShardInfo::content_hash of the shard that it belongs to. Errors: kIo, then no file.
  Status finish(uint64_t shard_hash);

 private:
  struct State;
  explicit LabelFileWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// A label file open for reading; const calls from any thread, each with its own scratch.
class LabelFile {
 public:
  /// Errors: kBadData for what is none, damaged or of another version; kIo.
  static Result<LabelFile> open(const std::string& path);

  [[nodiscard]] const std::string& path() const { return file_.path(); }
  /// As plimsoll::keep_within.
  Status keep_within(int64_t& room) { return plimsoll::io::keep_within(file_, room); }
  [[nodiscard]] int64_t size() const { return table_.num_entries; }
  /// Values of a label: 1, or the length of the lists.
  [[nodiscard]] int64_t width() const { return width_; }
  [[nodiscard]] uint64_t shard_hash() const { return shard_hash_; }
  /// Of all labels: another number, other labels.
  [[nodiscard]] uint64_t content_hash() const { return content_hash_; }
  [[nodiscard]] const std::vector<std::string>& files() const { return files_; }
  /// In the order in which they came.
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] int64_t scratch_bytes() const { return table_.block_bytes(); }

  /// Entry `index`; `values` points into the scratch. Errors: kBadData, kIo.
  Result<LabelEntry> read(int64_t index, std::span<std::byte> scratch) const;
  /// All of them in order. Errors: the visitor's; as read.
  Status visit(const std::function<Status(const LabelEntry&)>& visit) const;
  /// "file: line 7"
  [[nodiscard]] std::string place(const LabelEntry& entry) const;

 private:
  LabelFile(io::ReadFile file, datasets::shard::TableLayout table, int64_t width)
      : file_(std::move(file)), table_(table), width_(width) {}
  Result<LabelEntry> parse(const std::byte* from) const;
  io::ReadFile file_;
  datasets::shard::TableLayout table_;
  int64_t width_ = 1;
  uint64_t shard_hash_ = 0, content_hash_ = 0;
  std::vector<std::string> files_, names_;
};

}  // namespace plimsoll::corpora
