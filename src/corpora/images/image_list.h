// A file that lists images: where each lies, how long its file is and what it begins with, looked up by
// position, so that memory does not grow with the data. Its labels lie beside it as a label file.
//
//   header | entries in blocks | paths, each with the image's name behind it where it is a part of the file
//   entry:  offset of the path u64 | bytes of the path u32 | bytes of the name u32 | bytes of the image u64
//           | checksum of its beginning u64 | its offset in the file u64
//
// A name of 0 bytes says that the file is the image.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "corpora/images/image_entries.h"
#include "datasets/shard_table.h"
#include "io/file.h"

namespace plimsoll::corpora {

/// Length and beginning of an image's file. The checksum of the list covers them, also if images have been
/// packed since.
struct ImageFacts {
  int64_t bytes = 0;
  uint64_t head_checksum = 0;  ///< of what it begins with
};

/// What is true of all images of a list.
struct ImageListSummary {
  int64_t reading_bytes = 0;      ///< scratch that reading any of them takes
  int64_t width = 0, height = 0;  ///< of the one with the most pixels
  int64_t num_animated = 0;       ///< of which the first frame alone is read
  int64_t num_profiles = 0;       ///< with a colour profile, which is ignored
  bool operator==(const ImageListSummary&) const = default;
};

/// An entry that was read back; `path` is in the scratch.
struct ListedImage {
  const char* path = nullptr;  ///< ends with a zero
  std::string_view name = {};  ///< of a part of the file; else as the path
  bool is_part = false;
  int64_t offset = 0, bytes = 0;  ///< in the file
  uint64_t head_checksum = 0;
};

/// Writes a list and its labels (list_labels), each whole or not at all. `facts`: one for each image. Errors:
/// kBadData for more names of labels than there may be; kIo.
Status write_image_list(const std::string& path, const ImageEntries& entries,
                        std::span<const ImageFacts> facts, const ImageListSummary& summary);

/// Where the labels of a list lie: "…/x.images" has "…/x.labels".
std::string list_labels(const std::string& list_path);

/// A list open for reading; const calls from any thread, each with its own scratch.
class ImageList {
 public:
  /// Errors: kBadData for what is none, damaged or of another version; kIo.
  static Result<ImageList> open(const std::string& path);

  [[nodiscard]] int64_t size() const { return table_.num_entries; }
  [[nodiscard]] const ImageListSummary& summary() const { return summary_; }
  /// Of names, sizes and beginnings, in their order: another number, other images.
  [[nodiscard]] uint64_t content_hash() const { return content_hash_; }
  /// Of a look-up: a block of entries and the longest path.
  [[nodiscard]] int64_t scratch_bytes() const { return table_.block_bytes() + 2 * kMaxPathBytes + 1; }
  Status keep_within(int64_t& room) { return plimsoll::io::keep_within(file_, room); }

  /// Image `index`. Errors: kBadData, kIo.
  Result<ListedImage> read(int64_t index, std::span<std::byte> scratch) const;

  static constexpr int64_t kMaxPathBytes = 4096;

 private:
  ImageList(io::ReadFile file, datasets::shard::TableLayout table) : file_(std::move(file)), table_(table) {}
  io::ReadFile file_;
  datasets::shard::TableLayout table_;
  ImageListSummary summary_;
  uint64_t content_hash_ = 0;
};

}  // namespace plimsoll::corpora
