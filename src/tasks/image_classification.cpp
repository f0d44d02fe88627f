#include "tasks/image_classification.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "corpora/images/image_dataset.h"
#include "corpora/images/image_features.h"
#include "models/classifier.h"
#include "models/image_model.h"
#include "ops/loss.h"
#include "ops/normalize_pixels.h"
#include "ops/soft_cross_entropy.h"
#include "ops/structure.h"
#include "tasks/task_list.h"

namespace plimsoll::tasks {
namespace {

constexpr size_t kPixelsRow = 0, kLabelRow = 1, kSecondRow = 2, kShareRow = 3;

/// An example that is mixed with none.
void set_label(datasets::ExampleRow row, int32_t label) {
  datasets::row_as<int32_t>(row[kLabelRow])[0] = label;
  if (row.size() <= kShareRow) return;
  datasets::row_as<int32_t>(row[kSecondRow])[0] = label;
  datasets::row_as<float>(row[kShareRow])[0] = 1;
}

/// Images as rows of a batch.
class ImageSource final : public datasets::ExampleSource {
 public:
  explicit ImageSource(corpora::ImageDataset data) : data_(std::move(data)) {}
  [[nodiscard]] int64_t num_examples() const override { return data_.size(); }
  [[nodiscard]] int64_t num_units() const override { return data_.size(); }
  [[nodiscard]] int64_t scratch_bytes() const override { return data_.scratch_bytes(); }
  Result<datasets::ExampleCounts> read(int64_t index, datasets::ExampleRow row,
                                       std::span<std::byte> scratch) const override {
    return read_in_epoch(index, 0, row, scratch);
  }
  Result<datasets::ExampleCounts> read_in_epoch(int64_t index, int64_t epoch, datasets::ExampleRow row,
                                                std::span<std::byte> scratch) const override {
    PLIMSOLL_ASSIGN(const int32_t label,
                    data_.read(index, epoch, datasets::row_as<uint8_t>(row[kPixelsRow]), scratch));
    set_label(row, label);
    return datasets::ExampleCounts{1, label == datasets::kNoTarget ? 0 : 1};
  }
  Result<std::string> name(int64_t index, std::span<std::byte> scratch) const override {
    return data_.name(index, scratch);
  }
  Status keep_within(int64_t& room) override { return data_.keep_within(room); }
  Result<uint64_t> fingerprint(std::span<std::byte> /*scratch*/) const override {
    return data_.fingerprint();
  }

 private:
  corpora::ImageDataset data_;
};

class ImageClassification final : public Task {
 public:
  ImageClassification(const io::Labels& labels, const ImageInputs& inputs)
      : labels_(labels), images_(inputs) {
    if (reads_features())
      inputs_.push_back({.name = "features", .dtype = ir::DType::kF32, .shape = {images_.features.width}});
    else
      inputs_.push_back({.name = "pixels",
                         .dtype = ir::DType::kU8,
                         .shape = {images_.processor.height, images_.processor.width, 3}});
    inputs_.push_back({.name = "labels", .padding_bits = datasets::element_bits(ops::kIgnoreTarget)});
    if (!images_.mix.any()) return;
    inputs_.push_back({.name = "second", .padding_bits = datasets::element_bits(ops::kIgnoreTarget)});
    inputs_.push_back(
        {.name = "share", .dtype = ir::DType::kF32, .padding_bits = datasets::element_bits(1.0F)});
  }
  [[nodiscard]] Unit unit() const override { return {.name = "images"}; }

  Outputs forward(ir::Builder& b, const models::Model& model, std::span<const ir::ValueId> inputs,
                  const LossOperands& operands) const override {
    const models::ImageModel& images = models::image_model(model);
    const ir::ValueId features = features_of(b, images, inputs, operands.training, operands.random);
    const ir::ValueId scores = images.scores(b, features);
    const auto scope = b.scope("loss");
    return {loss(b, scores, inputs, operands),
            operands.logits ? flat(b, writes_features() ? features : scores) : ir::ValueId{}};
  }

  ir::ValueId logits(ir::Builder& b, const models::Model& model,
                     std::span<const ir::ValueId> inputs) const override {
    const models::ImageModel& images = models::image_model(model);
    return flat(b, images.scores(b, features_of(b, images, inputs, /*training=*/false, {})));
  }
  [[nodiscard]] ir::Shape logits_shape(int64_t batch) const override {
    return {batch, writes_features() ? images_.features.width : labels_.count()};
  }

  Result<std::unique_ptr<datasets::ExampleSource>> open_source(
      const datasets::DataFiles& files, const datasets::SourceOptions& options) const override {
    const corpora::ImageDatasetOptions how{
        .processor = images_.processor,
        .augmentations = options.augments ? images_.augmentations : images::Augmentations(),
        .labels = labels_,
        .seed = options.seed,
        .reading_bytes = images_.reading_bytes,
        .skips_damaged = options.skips_damaged};
    if (reads_features())
      return corpora::open_features(files.paths, how, images_.features.key, images_.features.width);
    PLIMSOLL_ASSIGN(corpora::ImageDataset data, corpora::ImageDataset::open(files.paths, how));
    return std::unique_ptr<datasets::ExampleSource>(std::make_unique<ImageSource>(std::move(data)));
  }
  [[nodiscard]] int64_t scratch_bytes() const override {
    if (reads_features()) return corpora::image_scratch_bytes(0);
    return corpora::image_scratch_bytes(images_.reading_bytes) + (blends() ? image_bytes() : 0);
  }

  [[nodiscard]] bool blends() const override { return images_.mix.any(); }
  void blend(int64_t batch, std::span<const std::span<std::byte>> tensors,
             std::span<std::byte> scratch) const override {
    const std::span<const int32_t> labels = datasets::row_as<int32_t>(tensors[kLabelRow]);
    const std::span<int32_t> second = datasets::row_as<int32_t>(tensors[kSecondRow]);
    const std::span<float> share = datasets::row_as<float>(tensors[kShareRow]);
    const auto count = static_cast<int64_t>(labels.size());
    const images::Processor& p = images_.processor;
    const images::Mix mix = images::draw_mix(images_.mix, images_.seed, batch, p.height, p.width);
    const auto image = [&](int64_t i) {
      return datasets::row_as<uint8_t>(tensors[kPixelsRow])
          .subspan(static_cast<size_t>(i * image_bytes()), static_cast<size_t>(image_bytes()));
    };
    // Each partner stands before, so that going backwards finds it as it was read; the first one's is last.
    const std::span<uint8_t> last = datasets::row_as<uint8_t>(scratch).first(image(0).size());
    std::ranges::copy(image(count - 1), last.begin());
    for (int64_t i = count - 1; i >= 0; --i) {
      const int64_t partner = images::mix_partner(i, count);
      const int32_t own = labels[static_cast<size_t>(i)], other = labels[static_cast<size_t>(partner)];
      if (own == datasets::kNoTarget || other == datasets::kNoTarget) continue;  // a damaged one
      images::apply_mix(mix, image(i), i == 0 ? last : image(partner), p.width);
      second[static_cast<size_t>(i)] = other;
      share[static_cast<size_t>(i)] = static_cast<float>(mix.share);
    }
  }

  [[nodiscard]] bool has_metrics() const override { return true; }
  [[nodiscard]] std::unique_ptr<metrics::Metrics> make_metrics(int64_t /*max_examples*/) const override {
    return metrics::ranked_label(labels_.count());
  }
  [[nodiscard]] int64_t metrics_bytes(int64_t /*max_examples*/) const override {
    return metrics::class_metrics_bytes(labels_.count());
  }
  void add_to(metrics::Metrics& metrics, std::span<const float> outputs,
              datasets::ExampleRow row) const override {
    const int32_t label = datasets::row_as<const int32_t>(row[kLabelRow])[0];
    if (label == datasets::kNoTarget) return;
    const auto value = static_cast<float>(label);
    metrics.add(outputs, {&value, 1});
  }

  [[nodiscard]] std::span<const std::string> class_names() const override { return labels_.names; }
  [[nodiscard]] std::optional<Answer> answer(std::span<const float> outputs,
                                             datasets::ExampleRow row) const override {
    const int32_t label = datasets::row_as<const int32_t>(row[kLabelRow])[0];
    if (label == datasets::kNoTarget) return {};
    const size_t best = metrics::largest(outputs);
    double sum = 0;
    for (const float output : outputs) sum += std::exp(static_cast<double>(output - outputs[best]));
    if (!std::isfinite(sum)) return {};
    return Answer{label, static_cast<int32_t>(best), static_cast<float>(1 / sum)};
  }

  void draw(uint64_t seed, datasets::ExampleRow row) const override {
    const auto next = [&] { return (seed = seed * 6364136223846793005ULL + 1442695040888963407ULL) >> 33; };
    if (reads_features())
      for (float& feature : datasets::row_as<float>(row[kPixelsRow]))
        feature = static_cast<float>(next() % 1024) / 1024;
    else
      for (std::byte& pixel : row[kPixelsRow]) pixel = static_cast<std::byte>(next());
    set_label(row, static_cast<int32_t>(next() % static_cast<uint64_t>(labels_.count())));
  }

  [[nodiscard]] const ImageInputs& images() const { return images_; }

 private:
  [[nodiscard]] bool reads_features() const { return images_.features.kind == FeatureUse::Kind::kRead; }
  [[nodiscard]] bool writes_features() const { return images_.features.kind == FeatureUse::Kind::kWritten; }
  [[nodiscard]] int64_t image_bytes() const { return images_.processor.height * images_.processor.width * 3; }

  [[nodiscard]] ir::ValueId loss(ir::Builder& b, ir::ValueId scores, std::span<const ir::ValueId> inputs,
                                 const LossOperands& operands) const {
    const auto rows = [&](size_t input) {
      return ops::reshape(b, inputs[input], {b.type(inputs[input]).shape.dim(0), 1});
    };
    const ir::ValueId labels = rows(kLabelRow);
    if (!operands.training || (images_.label_smoothing == 0 && !blends()))
      return ops::cross_entropy(b, scores, labels, operands.grad_scale, operands.acc).loss;
    ops::SoftTargets targets{.targets = labels, .smoothing = images_.label_smoothing};
    if (blends()) {
      targets.second = rows(kSecondRow);
      targets.share = rows(kShareRow);
    }
    return ops::soft_cross_entropy(b, scores, targets, operands.grad_scale, operands.acc).loss;
  }

  /// [batch, 1, width]
  [[nodiscard]] ir::ValueId features_of(ir::Builder& b, const models::ImageModel& model,
                                        std::span<const ir::ValueId> inputs, bool training,
                                        ir::ValueId random) const {
    if (reads_features()) {
      const ir::Shape shape = b.type(inputs[kPixelsRow]).shape;
      return ops::reshape(b, inputs[kPixelsRow], {shape.dim(0), 1, shape.dim(1)});
    }
    const images::Processor& p = images_.processor;
    const ops::PixelScale scale{
        .rescale = p.rescale, .mean = {p.mean.begin(), p.mean.end()}, .std = {p.std.begin(), p.std.end()}};
    const ir::ValueId pixels = ops::normalize_pixels(b, inputs[kPixelsRow], scale);
    return model.features(b, {.pixels = pixels, .training = training, .random = random});
  }
  /// Without the axis of the one row.
  static ir::ValueId flat(ir::Builder& b, ir::ValueId scores) {
    const ir::Shape shape = b.type(scores).shape;
    return ops::reshape(b, scores, {shape.dim(0), shape.dim(2)});
  }

  const io::Labels labels_;
  const ImageInputs images_;
};

Result<std::unique_ptr<Task>> make_image_task(const TaskInputs& inputs) {
  if (models::image_model(inputs.model).channels() != 3)
    return Error{ErrorCode::kInvalidArgument, "the model takes images without colours", "num_channels",
                 "images are read as RGB: use a model with num_channels 3"};
  return make_image_classification(*inputs.labels, *inputs.images);
}

Status check_single_label(const io::ConfigJson& model) {
  PLIMSOLL_ASSIGN(const io::LabelFields fields, io::read_label_fields(model));
  if (!fields.problem || *fields.problem == io::ProblemType::kSingleLabel) return Ok{};
  return model.error("problem_type", "single_label_classification: each image has one label");
}

constexpr std::array<std::string_view, 3> kImageSettings = {"classification.", "data.images.",
                                                            "training.label_smoothing"};

}  // namespace

std::unique_ptr<Task> make_image_classification(const io::Labels& labels, const ImageInputs& inputs) {
  return std::make_unique<ImageClassification>(labels, inputs);
}

const ImageInputs* image_inputs_of(const Task& task) {
  const auto* images = dynamic_cast<const ImageClassification*>(&task);
  return images == nullptr ? nullptr : &images->images();
}

const TaskDef& image_classification() {
  static constexpr TaskDef kDef = {.name = "image_classification",
                                   .trains = "classifier of images",
                                   .pipeline = "image-classification",
                                   .preparation = Preparation::kImages,
                                   .make = make_image_task,
                                   .is_made_for = models::is_image_model,
                                   .check = check_single_label,
                                   .adapt = models::as_image_classifier,
                                   .settings = kImageSettings};
  return kDef;
}

}  // namespace plimsoll::tasks
