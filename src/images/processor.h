// Describes how a picture of any size becomes the pixels of a model's input, with the semantics of
// transformers' image processors. Resizing and cropping happen here, in bytes; rescaling and normalising
// happen in the program, on the device (ops/normalize_pixels.h).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "io/tree.h"

namespace plimsoll::images {

enum class Resize : uint8_t { kNone, kShortest, kExact };
enum class Interpolation : uint8_t { kNearest, kBilinear, kBicubic, kLanczos };
enum class Crop : uint8_t { kNone, kCenter };
enum class Orientation : uint8_t { kExif, kIgnore };
enum class Alpha : uint8_t { kDrop, kWhite };
/// Whose pixels: Pillow's, bit for bit, or those of torchvision's tensors, within one level.
enum class Backend : uint8_t { kPil, kTorch };

/// Pillow's limit for decompression bombs is half of this; above this it refuses.
inline constexpr int64_t kMaxPixels = 178'956'970;

/// How pictures become pixels. The result is always RGB, height x width.
///
///   picture -> orientation, alpha -> resize -> crop (black where the picture is smaller) -> u8 [height,
///   width, 3]
///
/// kShortest scales the shorter side to `shortest` and keeps the aspect ratio, so it needs kCenter; kExact
/// resizes to height x width, or with kCenter to resize_height x resize_width.
struct Processor {
  int64_t height = 224;
  int64_t width = 224;
  Resize resize = Resize::kExact;
  int64_t shortest = 0;         ///< kShortest
  int64_t resize_height = 224;  ///< kExact; height and width where nothing is cropped
  int64_t resize_width = 224;
  Interpolation interpolation = Interpolation::kBilinear;
  Crop crop = Crop::kNone;
  bool round_offset =
      false;  ///< an odd margin of the crop: torchvision and timm round, transformers cuts off
  double rescale = 1 / 255.0;                    ///< 1 where nothing is rescaled
  std::array<double, 3> mean = {0.5, 0.5, 0.5};  ///< 0 where nothing is normalised
  std::array<double, 3> std = {0.5, 0.5, 0.5};   ///< 1 where nothing is normalised
  Orientation orientation = Orientation::kExif;
  Alpha alpha = Alpha::kDrop;
  int64_t max_pixels = kMaxPixels;
  Backend backend = Backend::kPil;

  bool operator==(const Processor&) const = default;
};

/// The words of settings and messages: none, shortest, exact; nearest, bilinear, …
std::string_view name(Resize);
std::string_view name(Interpolation);
std::string_view name(Crop);
std::string_view name(Orientation);
std::string_view name(Alpha);
std::string_view name(Backend);

/// ViTImageProcessor's defaults for squares of that size: what is used where a model has no processor file.
Processor default_processor(int64_t size);

/// Sizes that go together and fit in memory, finite numbers. Errors: kInvalidArgument.
Status check(const Processor& processor);

/// Reads a preprocessor_config.json: ViTImageProcessor, ConvNextImageProcessor, BitImageProcessor and others
/// with the same fields, with or without "Fast". Errors: kBadData for fields whose meaning would change the
/// pixels and is not supported (pad_size, longest_edge, …), kIo.
Result<Processor> read_processor(const std::string& path);
/// The same from text; `source` is for messages.
Result<Processor> parse_processor(std::string_view text, std::string source);
/// The processor of a timm model: `pretrained_cfg` of its config.json, as timm evaluates.
/// Errors: kBadData.
Result<Processor> timm_processor(const io::Tree& pretrained_cfg, std::string source);

/// The text of a preprocessor_config.json that makes transformers reproduce the pixels.
std::string processor_json(const Processor& processor);

}  // namespace plimsoll::images
