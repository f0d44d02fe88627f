// Classification of images: transformers' …ForImageClassification. Images travel as bytes and become numbers
// in the program.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "images/augment.h"
#include "images/mix.h"
#include "images/processor.h"
#include "io/label_fields.h"
#include "tasks/task.h"

namespace plimsoll::tasks {

/// What is done with the features of images, which the head reads, where the backbone is frozen
/// (image_features.h).
struct FeatureUse {
  enum class Kind : uint8_t {
    kNone,
    kWritten,  ///< they are the outputs, in place of the logits
    kRead,     ///< they are the inputs, in place of the pixels
  } kind = Kind::kNone;
  std::string key = {};  ///< kRead: as features_path takes it
  int64_t width = 0;     ///< of an image
};

/// What the task knows of images: how files become pixels, and what reading them takes.
struct ImageInputs {
  images::Processor processor = {};
  images::Augmentations augmentations = {};  ///< of what is trained on
  int64_t reading_bytes = 0;                 ///< scratch that reading the largest image takes
  double label_smoothing = 0;                ///< in training; an evaluation's loss is without it
  images::MixSettings mix = {};              ///< of the examples of a batch that is trained on
  uint64_t seed = 0;                         ///< of what is mixed
  FeatureUse features = {};
};

/// Inputs: "pixels" u8[batch, height, width, 3], "labels" i32[batch] (ops::kIgnoreTarget in rows without an
/// image, and for an image that turned out to be damaged where such are skipped); where examples are mixed
/// also "second" i32[batch], the partner's class, and "share" f32[batch], that of the own class. Logits
/// [batch, labels]. The loss is the cross-entropy of the label, summed over the images; metrics as
/// metrics::ranked_label. With features that are read, "features" f32[batch, width] stands in place of the
/// pixels. Its data are lists of images with labels beside them (corpora/images/image_list.h).
std::unique_ptr<Task> make_image_classification(const io::Labels& labels, const ImageInputs& inputs);

/// What such a task was made with; null of any other.
const ImageInputs* image_inputs_of(const Task& task);

}  // namespace plimsoll::tasks
