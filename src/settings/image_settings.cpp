// The settings of `data.images`: how files become the pixels of a batch.
#include <fmt/format.h>

#include <algorithm>

#include "images/augment.h"
#include "settings/declare.h"
#include "settings/run_config_checks.h"
#include "settings/wrong.h"

namespace plimsoll::settings {
namespace {

constexpr double kMaxSide = 1 << 14;
constexpr size_t kChannels = 3;

Status check_channels(const char* path, const std::vector<double>& values) {
  if (values.empty() || values.size() == kChannels) return Ok{};
  return wrong_setting(
      fmt::format("{} has {} numbers, expected one for each of 3 channels", path, values.size()),
      fmt::format("write {}: [0.485, 0.456, 0.406]", path));
}

}  // namespace

void add_image_settings(std::vector<Setting>& list) {
  const auto add = [&](Setting setting) { list.push_back(std::move(setting)); };
  add(number(PLIMSOLL_FIELD(data.images.size), kWhat,
             "height and width of the input; auto, here and below: as preprocessor_config.json", 1, kMaxSide,
             "auto"));
  add(plain(PLIMSOLL_FIELD(data.images.resize), kWhat,
            "shortest: the shorter side to size; exact: both sides, whatever the aspect ratio",
            {"auto", "none", "shortest", "exact"}));
  add(plain(PLIMSOLL_FIELD(data.images.interpolation), kWhat, "filter of the resizing",
            {"auto", "bilinear", "bicubic", "lanczos", "nearest"}));
  add(plain(PLIMSOLL_FIELD(data.images.crop), kWhat, "center: cut size x size out of the middle",
            {"auto", "center", "none"}));
  add(number(PLIMSOLL_FIELD(data.images.rescale), kWhat, "factor that multiplies the pixels, usually 1/255",
             0, 1e3, "auto"));
  add(number(PLIMSOLL_FIELD(data.images.mean), kWhat,
             "mean of each channel, subtracted after rescaling; empty: auto", -1e3, 1e3));
  add(above(PLIMSOLL_FIELD(data.images.std), kWhat,
            "standard deviation of each channel, the divisor; empty: auto", 0, 1e3));
  add(plain(PLIMSOLL_FIELD(data.images.orientation), kWhat,
            "exif: turn photos as their EXIF orientation says; auto: exif", {"auto", "exif", "ignore"}));
  add(plain(PLIMSOLL_FIELD(data.images.alpha), kWhat,
            "transparent pixels: drop the alpha channel, or blend with white; auto: drop",
            {"auto", "drop", "white"}));
  add(number(PLIMSOLL_FIELD(data.images.max_pixels), kWhat,
             "images with more pixels are refused; auto: 178956970, as in Pillow", 1, 0x1p31, "auto"));
  add(plain(PLIMSOLL_FIELD(data.images.backend), kWhat,
            "resize as Pillow does, or as torchvision does with tensors; auto: pil",
            {"auto", "pil", "torch"}));
  add(plain(PLIMSOLL_FIELD(data.images.augment), kWhat,
            "random changes in training: [random_resized_crop, flip, {color_jitter: {hue: 0.1}}]"));
  add(number(PLIMSOLL_FIELD(data.images.mixup), kWhat,
             "MixUp: blend each image with the one before it, by Beta(mixup, mixup); 0: none", 0, 1e3));
  add(number(PLIMSOLL_FIELD(data.images.cutmix), kWhat,
             "CutMix: paste a box of the one before it, by Beta(cutmix, cutmix); 0: none", 0, 1e3));
  add(plain(PLIMSOLL_FIELD(data.images.cache), kHow,
            "copy the images to one file in data.cache_dir: jpeg as their files are, u8 decoded",
            {"none", "jpeg", "u8"}));
}

Status check_images(const RunConfig& config) {
  const ImageSettings& said = config.data.images;
  PLIMSOLL_TRY(check_channels("data.images.mean", said.mean));
  PLIMSOLL_TRY(check_channels("data.images.std", said.std));
  if (said.augment.entries.is_null()) return Ok{};
  auto augmentations = images::parse_augmentations(said.augment.entries);
  if (augmentations) return Ok{};
  Error error = std::move(augmentations).error();
  return wrong_setting("data.images.augment: " + error.what, error.hint);
}

}  // namespace plimsoll::settings
