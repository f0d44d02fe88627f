// The recorded pictures of tests/images/pictures, and loading them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/at.h"
#include "images/load.h"
#include "io/file.h"

namespace plimsoll::images {

inline constexpr int64_t kPictureHeight = 17, kPictureWidth = 23;
inline constexpr int64_t kSmallHeight = 7, kSmallWidth = 9;

inline std::string picture_path(const std::string& name) {
  return std::string(PLIMSOLL_TEST_DIR) + "/images/pictures/" + name;
}

inline std::string picture(const std::string& name) {
  return io::read_small_file(picture_path(name), 1 << 20).value();
}

inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// The names of all pictures, sorted.
inline std::vector<std::string> picture_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(picture_path(""))) {
    const std::string extension = entry.path().extension();
    if (extension == ".png" || extension == ".jpg" || extension == ".webp")
      names.push_back(entry.path().filename());
  }
  std::ranges::sort(names);
  return names;
}

/// The pixels of a file in exactly the scratch memory that it is said to need, at an odd address.
inline Result<std::vector<uint8_t>> load_picture(const std::string& file, const Processor& processor,
                                                 const Draw* draw = nullptr) {
  PLIMSOLL_ASSIGN(const ImageInfo info, probe(bytes_of(file)));
  PLIMSOLL_TRY(check_picture(info, processor));
  const auto* augmentations = draw == nullptr ? nullptr : draw->augmentations;
  std::vector<std::byte> scratch(at(scratch_bytes(info, processor, augmentations)) + 1);
  std::vector<uint8_t> pixels(at(processor.height * processor.width * 3), 0xEE);
  PLIMSOLL_TRY(load(bytes_of(file), processor, draw, pixels, std::span(scratch).subspan(1)));
  return pixels;
}

/// Takes pictures of the recorded size as they are.
inline Processor unchanged(int64_t height = kPictureHeight, int64_t width = kPictureWidth) {
  return {.height = height, .width = width, .resize = Resize::kNone};
}

/// The same of a file: turned by a quarter, height and width change places.
inline Processor unchanged(const std::string& file) {
  const bool turned = probe(bytes_of(file)).value().orientation > 4;
  return turned ? unchanged(kPictureWidth, kPictureHeight) : unchanged();
}

inline Processor to_size(int64_t height, int64_t width,
                         Interpolation interpolation = Interpolation::kBicubic) {
  return {.height = height,
          .width = width,
          .resize_height = height,
          .resize_width = width,
          .interpolation = interpolation};
}

}  // namespace plimsoll::images
