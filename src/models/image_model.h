// A model over images: what its forward graph runs on, the images that it takes, and its scores of labels.
#pragma once

#include <cstdint>
#include <string>

#include "models/model.h"

namespace plimsoll::models {

/// What the forward pass of an image model runs on.
struct ImageForward {
  ir::ValueId pixels;       ///< [N, H, W, C], normalised (ops::normalize_pixels)
  bool training = false;    ///< dropout, statistics of the batch; else the model is as it answers
  ir::ValueId random = {};  ///< i32[4], see ops.h: what dropout draws from; needed in training

  /// What dropout draws from; absent where it does not apply.
  [[nodiscard]] ir::ValueId noise() const { return training ? random : ir::ValueId{}; }
};

/// One of equal parts of a tensor's rows.
struct RowPart {
  int64_t index = 0, count = 1;
};

class ImageModel : public Model {
 public:
  /// Which part of the tensor called other_name(name) the tensor `name` is: q, k and v lie in one there.
  [[nodiscard]] virtual RowPart other_part(std::string_view /*name*/) const { return {}; }

  /// The side of the square images that config.json names; 0: it names none.
  [[nodiscard]] int64_t image_size() const { return image_size_; }
  [[nodiscard]] int64_t channels() const { return channels_; }

  /// Says how large the images are, before the first graph is built: a model with learned positions
  /// interpolates them or refuses the size. Without this call they are image_size() squared. Errors:
  /// kInvalidArgument naming both sizes.
  virtual Status take_images(int64_t height, int64_t width);

  /// Builds the backbone: what the head reads of each image, [N, 1, num_features()]. The axis of one row
  /// stays, so that each image is a granule of its own (docs/adding-a-task.md, "Bits").
  virtual ir::ValueId features(ir::Builder& b, const ImageForward& forward) const = 0;
  /// Builds the head on such features: f32 [N, 1, num_labels()].
  virtual ir::ValueId scores(ir::Builder& b, ir::ValueId features) const = 0;
  /// Builds the whole forward pass.
  [[nodiscard]] ir::ValueId logits(ir::Builder& b, const ImageForward& forward) const {
    return scores(b, features(b, forward));
  }
  /// Columns of the head's weight; 0: there is no head.
  [[nodiscard]] int64_t num_features() const;

  [[nodiscard]] std::string_view head_module() const override { return "classifier"; }

 protected:
  // Declare parameters, in the order of the checkpoint.

  /// How a tensor begins; `std` as Parameter::init_std.
  struct FirstValues {
    Init init = Init::kNormal;
    double std = 0.02;
  };
  void add_vector(const std::string& name, int64_t size, const FirstValues& first);
  /// "<name>.weight" of ones, "<name>.bias" of zeros.
  void add_norm(const std::string& name, int64_t size);
  /// A convolution's "<name>.weight", without its bias.
  void add_filters(const std::string& name, const ir::Shape& shape, const FirstValues& first);
  /// "<name>.weight" [out, in] and "<name>.bias", which begins as `bias` says.
  void add_linear(const std::string& name, int64_t out, int64_t in, const FirstValues& first,
                  const FirstValues& bias = {Init::kZeros, 0});

  int64_t image_size_ = 0;
  int64_t channels_ = 3;
};

/// The model as an image model; null where it is none.
const ImageModel* as_image_model(const Model& model);
ImageModel* as_image_model(Model& model);

/// The same, of a model that must be one: what else came here is a bug.
const ImageModel& image_model(const Model& model);

/// The image model of a config.json. Errors: as make_model, and kBadData for a model that is none.
Result<std::unique_ptr<ImageModel>> make_image_model(const io::ConfigJson& config);

}  // namespace plimsoll::models
