// The evaluation transforms of timm, from a model's pretrained_cfg.
#include <cmath>

#include "images/processor.h"
#include "images/processor_fields.h"
#include "io/model_config.h"

namespace plimsoll::images {
namespace {

Result<Interpolation> interpolation_of(const io::ConfigJson& config) {
  PLIMSOLL_ASSIGN(const std::string word, config.string("interpolation", "bicubic"));
  for (const Interpolation interpolation :
       {Interpolation::kNearest, Interpolation::kBilinear, Interpolation::kBicubic, Interpolation::kLanczos})
    if (word == name(interpolation)) return interpolation;
  return config.error("interpolation", "nearest, bilinear, bicubic or lanczos");
}

}  // namespace

Result<Processor> timm_processor(const io::Tree& pretrained_cfg, std::string source) {
  const io::ConfigJson config(pretrained_cfg, std::move(source));
  Processor processor;
  PLIMSOLL_ASSIGN(const auto input, config.integers("input_size", {1, 1 << 14}));
  if (input.size() != 3 || input[0] != 3) return config.error("input_size", "[3, height, width]");
  PLIMSOLL_ASSIGN(const double part, config.number("crop_pct", {1e-3, 1}, 0.875));
  PLIMSOLL_ASSIGN(const std::string mode, config.string("crop_mode", "center"));
  PLIMSOLL_ASSIGN(processor.interpolation, interpolation_of(config));
  // timm's defaults: ImageNet's mean and standard deviation.
  PLIMSOLL_ASSIGN(processor.mean, read_triple(config, "mean", {0.485, 0.456, 0.406}));
  PLIMSOLL_ASSIGN(processor.std, read_triple(config, "std", {0.229, 0.224, 0.225}));
  const auto larger = [part](int64_t side) {
    return static_cast<int64_t>(std::floor(static_cast<double>(side) / part));
  };
  processor.height = input[1];
  processor.width = input[2];
  processor.resize_height = larger(input[1]);
  processor.resize_width = larger(input[2]);
  processor.crop = Crop::kCenter;
  processor.round_offset = true;
  if (mode == "center" && processor.height == processor.width) {
    processor.resize = Resize::kShortest;
    processor.shortest = processor.resize_height;
  } else if (mode != "squash") {
    return config.error("crop_mode", "center with a square input_size, or squash");
  }
  PLIMSOLL_TRY(check_read(processor, config));
  return processor;
}

}  // namespace plimsoll::images
