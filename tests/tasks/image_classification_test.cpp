// Images as examples: inputs, the loss against the formula, metrics from rows.
#include "tasks/image_classification.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "backends/reference/interpreter.h"
#include "base/check.h"
#include "models/image_model.h"
#include "ops/op_list.h"
#include "ops/ops.h"
#include "tasks/task_list.h"

namespace plimsoll::tasks {
namespace {

constexpr int64_t kHeight = 2, kWidth = 3, kBatch = 3, kClasses = 4, kFeatures = kHeight * kWidth * 3;

/// A linear map of the pixels.
class PixelModel final : public models::ImageModel {
 public:
  PixelModel() {
    num_labels_ = kClasses;
    parameters_.push_back({.name = "classifier.weight",
                           .kind = models::ParameterKind::kLinear,
                           .shape = {kClasses, kFeatures},
                           .views = {{"classifier.weight", 0, {kClasses, kFeatures}}}});
  }
  ir::ValueId features(ir::Builder& b, const models::ImageForward& forward) const override {
    const int64_t batch = b.type(forward.pixels).shape.dim(0);
    return ops::reshape(b, forward.pixels, {batch, 1, kFeatures});
  }
  ir::ValueId scores(ir::Builder& b, ir::ValueId features) const override {
    return ops::linear(b, features, read_parameter(b, "classifier.weight"), {});
  }
};

ImageInputs inputs_of(double smoothing = 0) {
  ImageInputs inputs;
  inputs.processor.height = kHeight;
  inputs.processor.width = kWidth;
  inputs.processor.rescale = 0.01;
  inputs.processor.mean = {0.25, 0.5, 1};
  inputs.processor.std = {0.5, 2, 4};
  inputs.label_smoothing = smoothing;
  return inputs;
}

const io::Labels kLabels = {io::ProblemType::kSingleLabel, io::default_label_names(kClasses)};

double pixel(int64_t i) { return static_cast<double>(i * 37 % 256); }
double weight(int64_t i) { return std::sin(static_cast<double>(i)) / 3; }

/// log p of each class of an image, by the formula.
std::vector<double> log_probabilities(int64_t image, const ImageInputs& inputs) {
  std::vector<double> scores(kClasses, 0);
  double sum = 0;
  for (int64_t c = 0; c < kClasses; ++c) {
    for (int64_t f = 0; f < kFeatures; ++f) {
      const auto channel = static_cast<size_t>(f % 3);
      const double x =
          (pixel(image * kFeatures + f) * inputs.processor.rescale - inputs.processor.mean[channel]) /
          inputs.processor.std[channel];
      scores[static_cast<size_t>(c)] += weight(c * kFeatures + f) * x;
    }
    sum += std::exp(scores[static_cast<size_t>(c)]);
  }
  for (double& score : scores) score -= std::log(sum);
  return scores;
}

/// The loss of three images with the classes 3, none and 1, behind 10 of other micro-batches.
double loss_of(const ImageInputs& how, bool training) {
  const auto task = make_image_classification(kLabels, how);
  const PixelModel model;
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  reference::Interpreter interpreter;
  std::vector<double> pixels, weights;
  for (int64_t i = 0; i < kBatch * kFeatures; ++i) pixels.push_back(pixel(i));
  for (int64_t i = 0; i < kClasses * kFeatures; ++i) weights.push_back(weight(i));
  const auto state = [&](const std::string& name, const ir::TensorType& type, std::vector<double> data,
                         ir::StateClass kind) {
    interpreter.set(name, reference::tensor(type, std::move(data)));
    return b.state({name, type, kind});
  };
  std::vector<ir::ValueId> inputs;
  for (const datasets::TensorSpec& input : task->inputs())
    inputs.push_back(state("batch." + input.name, input.batch_type(kBatch, 1),
                           input.name == "pixels" ? pixels : std::vector<double>{3, ops::kIgnoreTarget, 1},
                           ir::StateClass::kInput));
  const auto scalar = [&](const char* name, double value) {
    return state(name, {ir::DType::kF32, {1}}, {value}, ir::StateClass::kScalars);
  };
  interpreter.set("classifier.weight", reference::tensor({ir::DType::kF32, {kClasses, kFeatures}}, weights));
  const Outputs outputs = task->forward(
      b, model, inputs,
      {.grad_scale = scalar("scale", 1), .acc = scalar("acc", 10), .training = training, .logits = true});
  for (const Status& status : {b.status(), interpreter.run(graph)})
    PLIMSOLL_CHECK(status.ok(), status ? "" : status.error().message());
  EXPECT_EQ(interpreter.value(outputs.logits).type.shape, task->logits_shape(kBatch));
  return interpreter.value(outputs.loss).data[0];
}

TEST(ImageClassification, HasCrossEntropyOverNormalisedPixels) {
  const ImageInputs inputs = inputs_of();
  const double expected = 10 - log_probabilities(0, inputs)[3] - log_probabilities(2, inputs)[1];
  EXPECT_NEAR(loss_of(inputs, true), expected, 1e-10);
  EXPECT_NEAR(loss_of(inputs, false), expected, 1e-10);
}

TEST(ImageClassification, SmoothsLabelsInTrainingAlone) {
  const ImageInputs inputs = inputs_of(0.2);
  double expected = 10;
  for (const auto& [image, label] : {std::pair{0, 3}, std::pair{2, 1}}) {
    const std::vector<double> log_p = log_probabilities(image, inputs);
    expected -= 0.8 * log_p[static_cast<size_t>(label)];
    for (const double value : log_p) expected -= 0.2 / kClasses * value;
  }
  EXPECT_NEAR(loss_of(inputs, true), expected, 1e-10);
  EXPECT_NEAR(loss_of(inputs, false), loss_of(inputs_of(), false), 1e-12);
}

TEST(ImageClassification, InputsAreBytesAndClasses) {
  const auto task = make_image_classification(kLabels, inputs_of());
  ASSERT_EQ(task->inputs().size(), 2U);
  EXPECT_EQ(task->inputs()[0].batch_type(6, 9), (ir::TensorType{ir::DType::kU8, {6, kHeight, kWidth, 3}}));
  EXPECT_EQ(task->inputs()[1].batch_type(6, 9), (ir::TensorType{ir::DType::kI32, {6}}));
  EXPECT_EQ(task->unit().name, "images");
  EXPECT_EQ(task->unit().of(77), 1);
  ImageInputs large = inputs_of();
  large.reading_bytes = 5 << 20;
  EXPECT_GT(make_image_classification(kLabels, large)->scratch_bytes(), large.reading_bytes);
}

/// The outputs of the pass that writes them, and the inputs of the steps that read them.
TEST(ImageClassification, FeaturesStandInPlaceOfPixelsOrLogits) {
  ImageInputs inputs = inputs_of();
  inputs.features = {.kind = FeatureUse::Kind::kWritten, .key = {}, .width = kFeatures};
  const auto writes = make_image_classification(kLabels, inputs);
  EXPECT_EQ(writes->inputs()[0].name, "pixels");
  EXPECT_EQ(writes->logits_shape(5), (ir::Shape{5, kFeatures}));
  EXPECT_NEAR(loss_of(inputs, false), loss_of(inputs_of(), false), 1e-12) << "with outputs of that shape";
  inputs.features = {.kind = FeatureUse::Kind::kRead, .key = "key", .width = kFeatures};
  inputs.reading_bytes = 5 << 20;
  const auto reads = make_image_classification(kLabels, inputs);
  EXPECT_EQ(reads->inputs()[0].batch_type(6, 9), (ir::TensorType{ir::DType::kF32, {6, kFeatures}}));
  EXPECT_EQ(reads->logits_shape(5), (ir::Shape{5, kClasses}));
  EXPECT_LT(reads->scratch_bytes(), inputs.reading_bytes) << "nothing is decoded";
  EXPECT_EQ(image_inputs_of(*reads)->features.key, "key");
}

TEST(ImageClassification, MetricsLeaveOutWhatHasNoClass) {
  const auto task = make_image_classification(kLabels, inputs_of());
  const auto metrics = task->make_metrics(3);
  std::vector<std::byte> pixels(kFeatures), label(4);
  const std::vector<std::span<std::byte>> row = {pixels, label};
  const auto add = [&](int32_t value, std::vector<float> outputs) {
    datasets::row_as<int32_t>(row[1])[0] = value;
    task->add_to(*metrics, outputs, row);
  };
  add(2, {0, 1, 5, 2});
  add(1, {0, 1, 5, 2});
  add(ops::kIgnoreTarget, {0, 1, 5, 2});
  EXPECT_DOUBLE_EQ(metrics->values()[0].value, 0.5);
  task->draw(7, row);
  EXPECT_LT(datasets::row_as<int32_t>(row[1])[0], kClasses);
}

/// A batch as a loader has read it: image i has the pixels 10 (i + 1) and the class i.
TEST(ImageClassification, MixesABatchInPlace) {
  ImageInputs inputs = inputs_of();
  EXPECT_FALSE(make_image_classification(kLabels, inputs)->blends());
  inputs.mix = {.mixup = 0.4};
  inputs.seed = 5;
  const auto task = make_image_classification(kLabels, inputs);
  ASSERT_TRUE(task->blends());
  ASSERT_EQ(task->inputs().size(), 4U);
  constexpr int32_t kDamaged = 1;
  std::vector<uint8_t> pixels;
  std::vector<int32_t> labels, second;
  std::vector<float> share(4, 1);
  for (int32_t i = 0; i < 4; ++i) {
    pixels.insert(pixels.end(), kFeatures, static_cast<uint8_t>(10 * (i + 1)));
    labels.push_back(i == kDamaged ? ops::kIgnoreTarget : i);
    second.push_back(labels.back());
  }
  const std::vector<std::span<std::byte>> tensors = {
      std::as_writable_bytes(std::span(pixels)), std::as_writable_bytes(std::span(labels)),
      std::as_writable_bytes(std::span(second)), std::as_writable_bytes(std::span(share))};
  std::vector<std::byte> scratch(static_cast<size_t>(task->scratch_bytes()));
  task->blend(7, tensors, scratch);
  const images::Mix mix = images::draw_mix(inputs.mix, 5, 7, kHeight, kWidth);
  const auto blended = [&](double own, double other) { return mix.share * own + (1 - mix.share) * other; };
  EXPECT_NEAR(pixels[0], blended(10, 40), 0.5) << "the first one's partner is the last, as it was read";
  EXPECT_EQ(second[0], 3);
  EXPECT_FLOAT_EQ(share[0], static_cast<float>(mix.share));
  EXPECT_EQ(pixels[kFeatures], 20) << "damaged";
  EXPECT_EQ(pixels[2 * kFeatures], 30) << "its partner is damaged";
  EXPECT_EQ(share[2], 1);
  EXPECT_NEAR(pixels[3 * kFeatures], blended(40, 30), 0.5);
  EXPECT_EQ(second[3], 2);
}

TEST(ImageClassification, IsTheTaskOfImageModels) {
  const auto config = [](const char* json) { return *io::parse_config_json(json, "config.json"); };
  const auto refused = choose_task(
      "image_classification", config(R"({"model_type": "vit", "architectures": ["ViTForImageClassification"],
                             "problem_type": "multi_label_classification"})"));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), testing::HasSubstr("each image has one label"));
}

}  // namespace
}  // namespace plimsoll::tasks
