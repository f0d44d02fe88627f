#include "models/image_model.h"

#include <fmt/format.h>

#include "base/check.h"

namespace plimsoll::models {

Status ImageModel::take_images(int64_t height, int64_t width) {
  if (height > 0 && width > 0) return Ok{};
  return Error{ErrorCode::kInvalidArgument, fmt::format("images of {} x {} pixels are empty", height, width)};
}

int64_t ImageModel::num_features() const {
  for (const Parameter& p : parameters_)
    if (is_of_head(p.name) && p.shape.rank() == 2) return p.shape.dim(1);
  return 0;
}

void ImageModel::add_vector(const std::string& name, int64_t size, const FirstValues& first) {
  const ir::Shape shape{size};
  parameters_.push_back({name, ParameterKind::kVector, shape, first.init, first.std, {{name, 0, shape}}});
}

void ImageModel::add_norm(const std::string& name, int64_t size) {
  add_vector(name + ".weight", size, {Init::kOnes, 0});
  add_vector(name + ".bias", size, {Init::kZeros, 0});
}

void ImageModel::add_filters(const std::string& name, const ir::Shape& shape, const FirstValues& first) {
  const std::string weight = name + ".weight";
  parameters_.push_back({weight,
                         ParameterKind::kFilters,
                         shape,
                         first.init,
                         first.std,
                         {{weight, 0, shape, FileForm::kFilters}}});
}

void ImageModel::add_linear(const std::string& name, int64_t out, int64_t in, const FirstValues& first,
                            const FirstValues& bias) {
  const std::string weight = name + ".weight";
  const ir::Shape shape{out, in};
  parameters_.push_back({weight, ParameterKind::kLinear, shape, first.init, first.std, {{weight, 0, shape}}});
  add_vector(name + ".bias", out, bias);
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
