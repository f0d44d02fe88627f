#include "preprocessing/image_processor.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "io/file.h"
#include "models/presets.h"

namespace plimsoll::preprocessing {
namespace {

/// What a plan counts for a reading thread where the images are not known: photos of a few hundred pixels.
constexpr int64_t kUsualReading = int64_t{1} << 20;
constexpr int64_t kUsualSize = 224;

int64_t model_size(const io::ConfigJson& model) {
  const io::Tree* size = model.fields().find("image_size");
  return size != nullptr && size->kind == io::Tree::Kind::kInteger ? size->integer : kUsualSize;
}

Result<images::Processor> own_processor(const settings::RunConfig& config, const io::ConfigJson& model) {
  PLIMSOLL_ASSIGN(const std::string folder, settings::model_directory(config.model));
  const std::string file = folder + "/preprocessor_config.json";
  if (!folder.empty() && io::is_file(file)) return images::read_processor(file);
  if (const std::string_view preset = models::preset_processor(config.model.preset); !preset.empty())
    return images::parse_processor(preset, config.model.preset);
  if (const io::Tree* timm = model.fields().find("pretrained_cfg"); timm != nullptr && !timm->is_null())
    return images::timm_processor(*timm, model.source());
  return images::default_processor(model_size(model));
}

/// The value of a word, which the setting's choices have checked.
template <typename E, size_t N>
void set_word(const std::string& word, const std::array<E, N>& all, E& field) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](E value) { return images::name(value) == word; });
  if (found != all.end()) field = *found;
}

int64_t scaled(int64_t before, int64_t from, int64_t to) {
  return from == 0 ? to : (before * to + from / 2) / from;
}

void set_size(int64_t size, images::Processor& p) {
  p.shortest = scaled(p.shortest, std::min(p.height, p.width), size);
  p.resize_height = scaled(p.resize_height, p.height, size);
  p.resize_width = scaled(p.resize_width, p.width, size);
  p.height = p.width = size;
}

void set_resize(const settings::ImageSettings& said, images::Processor& p) {
  using images::Resize;
  set_word(said.resize, std::array{Resize::kNone, Resize::kShortest, Resize::kExact}, p.resize);
  if (said.resize == "shortest") {
    p.shortest = std::min(p.height, p.width);
    p.crop = images::Crop::kCenter;
  } else if (said.resize == "exact") {
    p.resize_height = p.height;
    p.resize_width = p.width;
    p.crop = images::Crop::kNone;
  }
  set_word(said.crop, std::array{images::Crop::kNone, images::Crop::kCenter}, p.crop);
  if (p.resize == Resize::kExact && p.crop == images::Crop::kNone) {
    p.resize_height = p.height;
    p.resize_width = p.width;
  }
}

}  // namespace

Result<images::Processor> image_processor(const settings::RunConfig& config, const io::ConfigJson& model) {
  using namespace images;
  PLIMSOLL_ASSIGN(Processor p, own_processor(config, model));
  const settings::ImageSettings& said = config.data.images;
  if (said.size) set_size(*said.size, p);
  set_resize(said, p);
  set_word(said.interpolation,
           std::array{Interpolation::kNearest, Interpolation::kBilinear, Interpolation::kBicubic,
                      Interpolation::kLanczos},
           p.interpolation);
  if (said.rescale) p.rescale = *said.rescale;
  if (!said.mean.empty()) std::copy_n(said.mean.begin(), p.mean.size(), p.mean.begin());
  if (!said.std.empty()) std::copy_n(said.std.begin(), p.std.size(), p.std.begin());
  set_word(said.orientation, std::array{Orientation::kExif, Orientation::kIgnore}, p.orientation);
  set_word(said.alpha, std::array{Alpha::kDrop, Alpha::kWhite}, p.alpha);
  p.max_pixels = said.max_pixels.value_or(p.max_pixels);
  set_word(said.backend, std::array{Backend::kPil, Backend::kTorch}, p.backend);
  PLIMSOLL_TRY(check(p));
  return p;
}

Result<tasks::ImageInputs> image_inputs(const settings::RunConfig& config, const io::ConfigJson& model,
                                        int64_t reading_bytes) {
  tasks::ImageInputs inputs;
  PLIMSOLL_ASSIGN(inputs.processor, image_processor(config, model));
  if (const io::Tree& list = config.data.images.augment.entries; !list.is_null()) {
    PLIMSOLL_ASSIGN(inputs.augmentations, images::parse_augmentations(list));
  }
  inputs.reading_bytes = reading_bytes > 0 ? reading_bytes : kUsualReading;
  inputs.label_smoothing = config.training.label_smoothing;
  inputs.mix = {.mixup = config.data.images.mixup, .cutmix = config.data.images.cutmix};
  inputs.seed = static_cast<uint64_t>(config.training.seed);
  return inputs;
}

}  // namespace plimsoll::preprocessing
