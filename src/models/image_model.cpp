#include "models/image_model.h"

#include <fmt/format.h>

#include "base/check.h"

namespace plimsoll::models {

Status ImageModel::take_images(int64_t height, int64_t width) {
  if (height > 0 && width > 0) return Ok{};
  return Error{ErrorCode::kInvalidArgument, fmt::format("images of {} x {} pixels have none", height, width)};
}

const ImageModel* as_image_model(const Model& model) { return dynamic_cast<const ImageModel*>(&model); }
ImageModel* as_image_model(Model& model) { return dynamic_cast<ImageModel*>(&model); }

const ImageModel& image_model(const Model& model) {
  const ImageModel* image = as_image_model(model);
  PLIMSOLL_CHECK(image != nullptr, "the model is no image model");
  return *image;
}

Result<std::unique_ptr<ImageModel>> make_image_model(const io::ConfigJson& config) {
  PLIMSOLL_ASSIGN(std::unique_ptr<Model> model, make_model(config));
  ImageModel* image = as_image_model(*model);
  if (image == nullptr) return config.error("model_type", "an image model");
  (void)model.release();
  return std::unique_ptr<ImageModel>(image);
}

}  // namespace plimsoll::models
