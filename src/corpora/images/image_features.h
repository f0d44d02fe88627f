// Features of images: what the head of a model reads of each, kept in a file where the backbone is frozen, so
// that training reads them instead of pictures. A file holds those of one source's images in their order,
// f32 [images, features].
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "corpora/images/image_dataset.h"
#include "datasets/example_source.h"
#include "io/file.h"

namespace plimsoll::corpora {

/// Where the features of `images` lie: beside the lists that they were opened from. `key` stands for all that
/// the features depend on beside the images: weights, processor, precision.
std::string features_path(std::span<const std::string> lists, const ImageDataset& images,
                          const std::string& key);

/// Writes such a file, whole or not at all.
class FeatureWriter {
 public:
  /// Errors: kIo.
  static Result<FeatureWriter> create(const std::string& path, int64_t images, int64_t features);
  /// Those of the next images, one after the other. A damaged image has none.
  Status add(std::span<const float> features) { return write(std::as_bytes(features)); }
  Status add_damaged();
  /// Errors: kIo.
  Status finish() { return file_.commit(); }

 private:
  FeatureWriter(io::AtomicFile file, int64_t features) : file_(std::move(file)), features_(features) {}
  Status write(std::span<const std::byte> bytes);
  io::AtomicFile file_;
  int64_t features_;
  int64_t bytes_ = 0;
};

/// Whether a file of so many images' features lies there whole.
bool has_features(const std::string& path, int64_t images, int64_t features);

/// Examples of two tensors, the features f32[features] and the label i32 (ops::kIgnoreTarget of a damaged
/// image). Errors: as ImageDataset::open; kBadData where the features are not there.
Result<std::unique_ptr<datasets::ExampleSource>> open_features(std::span<const std::string> lists,
                                                               const ImageDatasetOptions& options,
                                                               const std::string& key, int64_t features);

}  // namespace plimsoll::corpora
