// Images with labels to train on: files from lists, decoded when they are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "corpora/images/image_list.h"
#include "images/augment.h"
#include "images/processor.h"
#include "io/label_fields.h"

namespace plimsoll::corpora {

struct ImageDatasetOptions {
  images::Processor processor = {};
  images::Augmentations augmentations = {};  ///< none where it is evaluated
  io::Labels labels = {};                    ///< none: labels are not read
  uint64_t seed = 0;                         ///< of the augmentations
  int64_t reading_bytes = 0;                 ///< scratch that the plan has for reading an image
  bool skips_damaged = false;                ///< what cannot be decoded is left out of the loss
};

/// Images with random access. Everything is sized when opened; reading takes nothing from the heap (a
/// thread's first JPEG does). Const calls from any thread, each with its own scratch.
class ImageDataset {
 public:
  /// `lists` with labels beside them (list_labels). Errors: kBadData for missing or damaged lists, where a
  /// list and its labels are not each other's, and for images that need more scratch than the plan has; kIo.
  static Result<ImageDataset> open(std::span<const std::string> lists, const ImageDatasetOptions& options);
  ImageDataset(ImageDataset&&) noexcept;
  ImageDataset& operator=(ImageDataset&&) noexcept;
  ~ImageDataset();

  [[nodiscard]] int64_t size() const;
  [[nodiscard]] int64_t scratch_bytes() const;
  /// The same number, the same images and labels.
  [[nodiscard]] uint64_t fingerprint() const;
  /// Keeps the lists, not the images, in memory that fit `room` bytes, which become less. Errors: as read.
  Status keep_within(int64_t& room);

  /// Decodes image `index` into u8 [height, width, 3], with what epoch `epoch` draws for it, and returns its
  /// class; ops' ignored target where the image is damaged and such are skipped, with black pixels. Errors:
  /// kBadData with the file, also where it has changed since it was listed; kIo.
  Result<int32_t> read(int64_t index, int64_t epoch, std::span<uint8_t> pixels,
                       std::span<std::byte> scratch) const;
  /// The class of image `index`, which is not decoded. Errors: kBadData, kIo.
  Result<int32_t> label(int64_t index, std::span<std::byte> scratch) const;

  /// The path of image `index`; of a part of a file its path and the name in it. Errors: as read.
  Result<std::string> name(int64_t index, std::span<std::byte> scratch) const;

 private:
  struct State;
  explicit ImageDataset(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Scratch for a list's look-ups and an image that takes `reading_bytes`.
int64_t image_scratch_bytes(int64_t reading_bytes);

}  // namespace plimsoll::corpora
