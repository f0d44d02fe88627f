// preprocessor_config.json of transformers, read and written. Fields that a file leaves out have the defaults
// of its class, as there.
#include <fmt/format.h>

#include <cmath>

#include "images/processor.h"
#include "images/processor_fields.h"
#include "io/model_config.h"

namespace plimsoll::images {
namespace {

using io::Tree;
using Triple = std::array<double, 3>;

constexpr Triple kHalves = {0.5, 0.5, 0.5};
constexpr Triple kClipMean = {0.48145466, 0.4578275, 0.40821073};
constexpr Triple kClipStd = {0.26862954, 0.26130258, 0.27577711};

// A class of image processors: what an integer `size` means, and its defaults.
struct ProcessorClass {
  std::string_view name;
  bool square;  // an integer size is a square, else the shorter side
  int64_t size;
  int64_t crop;  // 0: none
  Interpolation interpolation;
  Triple mean, std;
};

constexpr ProcessorClass kClasses[] = {
    {"ViT", true, 224, 0, Interpolation::kBilinear, kHalves, kHalves},
    {"DeiT", true, 256, 224, Interpolation::kBicubic, kHalves, kHalves},
    {"ConvNext", false, 384, 0, Interpolation::kBicubic, kHalves, kHalves},
    {"Bit", false, 224, 224, Interpolation::kBicubic, kClipMean, kClipStd},
    {"CLIP", false, 224, 224, Interpolation::kBicubic, kClipMean, kClipStd},
};

class Reader {
 public:
  explicit Reader(const io::ConfigJson& file) : file_(file) {}

  Result<Processor> read() {
    PLIMSOLL_TRY(find_class());
    PLIMSOLL_TRY(refuse());
    PLIMSOLL_TRY(read_resize());
    PLIMSOLL_TRY(read_crop());
    PLIMSOLL_TRY(read_numbers());
    PLIMSOLL_TRY(check_read(processor_, file_));
    return processor_;
  }

 private:
  // The class's name without what says how it computes.
  Status find_class() {
    PLIMSOLL_ASSIGN(std::string type, file_.string("image_processor_type", ""));
    if (type.empty()) {
      PLIMSOLL_ASSIGN(type, file_.string("feature_extractor_type", "ViTImageProcessor"));
    }
    const std::string whole = type;
    for (const std::string_view suffix : {"Pil", "Fast", "ImageProcessor", "FeatureExtractor"})
      if (type.ends_with(suffix)) type.resize(type.size() - suffix.size());
    if (whole.ends_with("Fast")) processor_.backend = Backend::kTorch;
    for (const ProcessorClass& known : kClasses)
      if (known.name == type) return class_ = &known, Ok{};
    return file_.error("image_processor_type",
                       "ViTImageProcessor, BitImageProcessor, ConvNextImageProcessor, DeiTImageProcessor or "
                       "CLIPImageProcessor");
  }

  Status refuse() const {
    for (const std::string_view pads : {"do_pad", "do_thumbnail", "do_align_long_axis", "do_reduce_labels"}) {
      PLIMSOLL_ASSIGN(const bool on, file_.boolean(pads, false));
      if (on) return file_.error(pads, "false: its effect is not supported");
    }
    return Ok{};
  }

  Result<bool> flag(std::string_view field) const { return file_.boolean(field, true); }

  // A side in an object such as {"height": 224, "width": 224}; 0 where it is not named.
  Result<int64_t> side(const io::ConfigJson& sizes, std::string_view name) const {
    PLIMSOLL_ASSIGN(const auto value, sizes.optional_integer(name, {1, 1 << 14}));
    return value.value_or(0);
  }

  Result<io::ConfigJson> sizes(std::string_view field) const {
    const Tree* value = file_.fields().find(field);
    if (value == nullptr || value->kind != Tree::Kind::kMap) {
      PLIMSOLL_ASSIGN(const auto list, file_.integers(field, {1, 1 << 14}));
      Tree named = Tree::map();
      const bool square = class_->square || field == "crop_size";
      const int64_t fallback = field == "size" ? class_->size : class_->crop;
      if (list.size() > 2) return file_.error(field, "one or two integers, or an object");
      const int64_t first = list.empty() ? fallback : list[0];
      if (list.size() < 2 && !square) {
        named.set("shortest_edge", Tree::of(first));
      } else {
        named.set("height", Tree::of(first));
        named.set("width", Tree::of(list.size() == 2 ? list[1] : first));
      }
      return io::ConfigJson(std::move(named), file_.source());
    }
    return io::ConfigJson(*value, file_.source() + ": " + std::string(field));
  }

  Status read_resize() {
    PLIMSOLL_ASSIGN(const bool resize, flag("do_resize"));
    PLIMSOLL_TRY(read_interpolation());
    PLIMSOLL_ASSIGN(const io::ConfigJson size, sizes("size"));
    for (const std::string_view field : {"longest_edge", "max_height", "max_width"})
      if (size.has(field)) return size.error(field, "no such field: it leaves pictures of different sizes");
    PLIMSOLL_ASSIGN(const int64_t shortest, side(size, "shortest_edge"));
    PLIMSOLL_ASSIGN(const int64_t height, side(size, "height"));
    PLIMSOLL_ASSIGN(const int64_t width, side(size, "width"));
    if (shortest == 0 && (height == 0 || width == 0))
      return file_.error("size", "shortest_edge, or height and width");
    if (class_->name == "ConvNext" && resize) return read_convnext(shortest, height, width);
    if (!resize) {
      processor_.resize = Resize::kNone;
    } else if (shortest != 0) {
      processor_.resize = Resize::kShortest;
    }
    processor_.shortest = resize ? shortest : 0;
    processor_.height = processor_.resize_height = height == 0 ? shortest : height;
    processor_.width = processor_.resize_width = width == 0 ? shortest : width;
    return Ok{};
  }

  // Below 384 the picture is made 1 / crop_pct larger and cropped, from there on it is warped to a square.
  Status read_convnext(int64_t shortest, int64_t height, int64_t width) {
    PLIMSOLL_ASSIGN(const double part, file_.number("crop_pct", {1e-3, 1}, 224.0 / 256));
    const int64_t side = shortest != 0 ? shortest : std::min(height, width);
    processor_.height = processor_.width = processor_.resize_height = processor_.resize_width = side;
    constexpr int64_t kWarped = 384;
    if (side >= kWarped) return Ok{};
    processor_.resize = Resize::kShortest;
    processor_.shortest = static_cast<int64_t>(static_cast<double>(side) / part);
    processor_.crop = Crop::kCenter;
    return Ok{};
  }

  Status read_interpolation() {
    PLIMSOLL_ASSIGN(const auto code, file_.optional_integer("resample", {0, 5}));
    constexpr std::array kCodes = {Interpolation::kNearest, Interpolation::kLanczos, Interpolation::kBilinear,
                                   Interpolation::kBicubic};
    if (code && *code >= static_cast<int64_t>(kCodes.size()))
      return file_.error("resample", "0 (nearest), 1 (lanczos), 2 (bilinear) or 3 (bicubic)");
    processor_.interpolation = code ? kCodes[static_cast<size_t>(*code)] : class_->interpolation;
    return Ok{};
  }

  Status read_crop() {
    PLIMSOLL_ASSIGN(const bool crop, file_.boolean("do_center_crop", class_->crop != 0));
    if (!crop) return Ok{};
    PLIMSOLL_ASSIGN(const io::ConfigJson size, sizes("crop_size"));
    PLIMSOLL_ASSIGN(const int64_t height, side(size, "height"));
    PLIMSOLL_ASSIGN(const int64_t width, side(size, "width"));
    if (height == 0 || width == 0) return file_.error("crop_size", "height and width");
    const bool twice =
        processor_.crop == Crop::kCenter && (height != processor_.height || width != processor_.width);
    if (twice) return file_.error("crop_size", "the size that crop_pct leads to");
    processor_.crop = Crop::kCenter;
    processor_.height = height;
    processor_.width = width;
    return Ok{};
  }

  Status read_numbers() {
    PLIMSOLL_ASSIGN(const bool rescale, flag("do_rescale"));
    PLIMSOLL_ASSIGN(processor_.rescale, file_.number("rescale_factor", {0, 1e6}, 1 / 255.0));
    if (!rescale) processor_.rescale = 1;
    PLIMSOLL_ASSIGN(const bool normalize, flag("do_normalize"));
    PLIMSOLL_ASSIGN(processor_.mean, read_triple(file_, "image_mean", class_->mean));
    PLIMSOLL_ASSIGN(processor_.std, read_triple(file_, "image_std", class_->std));
    if (!normalize) {
      processor_.mean = {0, 0, 0};
      processor_.std = {1, 1, 1};
    }
    return Ok{};
  }

  const io::ConfigJson& file_;
  const ProcessorClass* class_ = nullptr;
  Processor processor_;
};

Tree triple(const Triple& values) {
  Tree list = Tree::list();
  for (const double value : values) list.items.push_back(Tree::of(value));
  return list;
}

Tree size_tree(int64_t height, int64_t width) {
  return Tree::map({{"height", Tree::of(height)}, {"width", Tree::of(width)}});
}

}  // namespace

Result<Processor> parse_processor(std::string_view text, std::string source) {
  PLIMSOLL_ASSIGN(const io::ConfigJson file, io::parse_config_json(text, std::move(source)));
  Result<Processor> processor = Reader(file).read();
  if (!processor) processor.error().hint = kProcessorHint;
  return processor;
}

Result<Processor> read_processor(const std::string& path) {
  PLIMSOLL_ASSIGN(const io::ConfigJson file, io::read_config_json(path));
  Result<Processor> processor = Reader(file).read();
  if (!processor) processor.error().hint = kProcessorHint;
  return processor;
}

std::string processor_json(const Processor& processor) {
  const bool cropped = processor.crop == Crop::kCenter;
  constexpr int64_t kCodes[] = {0, 2, 3, 1};  // nearest, bilinear, bicubic, lanczos
  Tree out = Tree::map();
  out.set("crop_size", cropped ? size_tree(processor.height, processor.width) : Tree());
  out.set("do_center_crop", Tree::of(cropped));
  out.set("do_convert_rgb", Tree::of(true));
  out.set("do_normalize", Tree::of(true));
  out.set("do_rescale", Tree::of(true));
  out.set("do_resize", Tree::of(processor.resize != Resize::kNone));
  out.set("image_mean", triple(processor.mean));
  out.set("image_processor_type", Tree::of(std::string(cropped ? "BitImageProcessor" : "ViTImageProcessor")));
  out.set("image_std", triple(processor.std));
  out.set("resample", Tree::of(kCodes[static_cast<int>(processor.interpolation)]));
  out.set("rescale_factor", Tree::of(processor.rescale));
  const bool shortest = processor.resize == Resize::kShortest;
  out.set("size", shortest ? Tree::map({{"shortest_edge", Tree::of(processor.shortest)}})
                           : size_tree(processor.resize_height, processor.resize_width));
  return io::to_json(out) + "\n";
}

}  // namespace plimsoll::images
