// A file that holds many images: the bytes of their files, or decoded pixels (images/stored_pixels.h), and
// behind them an index, a line of JSON for each:
//
//   header 64 | images, one behind the other | {"classes": [name, …]}, where ids have names
//                                            | {"image": name, "offset": n, "bytes": n, "label": name or id}
//                                            | …
//
//   header: "plmipack" | version u64 | images u64 | offset of the index u64 | bytes of the file u64 |
//           checksum of the index u64 | 0 u64 | checksum of the header up to here u64
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "corpora/images/image_entries.h"
#include "io/file.h"

namespace plimsoll::corpora {

class ImagePackWriter {
 public:
  /// Errors: kIo.
  static Result<ImagePackWriter> create(const std::string& path);

  /// Room for an image, which `write` fills; its place.
  int64_t place(int64_t bytes);
  /// Asks for the disk space of all that was placed. Errors: kIo where there is too little.
  Status reserve() { return file_.reserve(end_); }
  /// At a place; from any thread, each image from one. Errors: kIo.
  Status write(int64_t offset, std::span<const std::byte> bytes) { return file_.write_at(offset, bytes); }
  /// Before any image: the names of the labels that are ids.
  void name_ids(const std::vector<std::string>& names);
  /// Adds a line to the index. `label`: as JSON; empty: none.
  void add(std::string_view name, int64_t offset, int64_t bytes, std::string_view label);
  /// Writes the index and the header; before, there is no such file. Errors: kIo.
  Status finish();

 private:
  explicit ImagePackWriter(io::AtomicFile file) : file_(std::move(file)) {}
  io::AtomicFile file_;
  int64_t end_ = 0, num_images_ = 0;
  std::string index_;
};

/// Whether a file begins as a pack.
bool is_image_pack(const std::string& path);
/// Whether it is one and whole, as far as its header and its length say.
bool is_whole_image_pack(const std::string& path);

/// Adds the images of a pack, in its order. `shown`: the file that messages and labels name as its place,
/// such as the one that it was made from. Errors: kBadData for a damaged pack, and for labels (with
/// OnError::kSkip such images are counted instead); kIo.
Status add_image_pack(const std::string& path, const std::string& shown, const ImageCollection& how,
                      ImageEntries& entries);

}  // namespace plimsoll::corpora
