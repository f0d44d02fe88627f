// Runs of a task whose examples are no tokens: pictures of 3 x 5 bytes with one label each, a linear layer on
// their pixels, with or without a BatchNorm layer before it.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "devices/devices.h"
#include "io/file.h"
#include "io/temporary_folder.h"
#include "models/blocks/batch_norm.h"
#include "models/image_model.h"
#include "models/selection.h"
#include "ops/ops.h"
#include "preprocessing/unprepared_data.h"
#include "runtime/session_testing.h"
#include "settings/param_groups.h"
#include "settings/settings.h"
#include "strategy/plan_cache.h"
#include "strategy/prepare.h"
#include "tasks/task.h"
#include "training/trainer.h"

namespace plimsoll::training {

inline constexpr int64_t kPixels = 15, kChannels = 5, kClasses = 4, kRecord = kPixels + 1, kExamples = 48,
                         kBatch = 6;
inline constexpr const char* kWeight = "head.weight";

/// A linear layer on the pixels; before it, where it is asked for, a BatchNorm layer in a block of its own.
class PictureModel final : public models::Model {
 public:
  explicit PictureModel(bool has_norm = false) {
    if (has_norm) add_batch_norm({.name = "norm", .channels = kChannels});
    put_in_block(0, 0);
    parameters_.push_back({.name = kWeight,
                           .kind = models::ParameterKind::kLinear,
                           .shape = {kClasses, kPixels},
                           .init_std = 0.01,
                           .views = {{kWeight, 0, {kClasses, kPixels}}}});
  }
  /// Of u8[B, 3, 5]: f32[B, 1, classes].
  [[nodiscard]] ir::ValueId logits(ir::Builder& b, ir::ValueId pixels, bool training) const {
    ir::ValueId x = ops::cast(b, pixels, ir::DType::kF32);
    if (!batch_norms().empty()) {
      const auto scope = b.block(0, "layers.0");
      x = models::batch_norm(b, *this, "norm", x, {.relu = true, .training = training});
    }
    x = ops::reshape(b, x, {b.type(pixels).shape.dim(0), 1, kPixels});
    return ops::linear(b, x, read_parameter(b, kWeight), {});
  }
};

/// Records of the pixels and the label, a byte each.
class PictureSource final : public datasets::ExampleSource {
 public:
  explicit PictureSource(io::ReadFile file) : file_(std::move(file)) {}
  [[nodiscard]] int64_t num_examples() const override { return file_.size_bytes() / kRecord; }
  [[nodiscard]] int64_t num_units() const override { return num_examples(); }
  Result<datasets::ExampleCounts> read(int64_t index, datasets::ExampleRow row,
                                       std::span<std::byte> /*scratch*/) const override {
    PLIMSOLL_TRY(file_.read_at(index * kRecord, row[0]));
    std::byte label{};
    PLIMSOLL_TRY(file_.read_at(index * kRecord + kPixels, {&label, 1}));
    datasets::row_as<int32_t>(row[1])[0] = std::to_integer<int32_t>(label);
    return datasets::ExampleCounts{1, 1};
  }
  Result<uint64_t> fingerprint(std::span<std::byte> /*scratch*/) const override { return uint64_t{7}; }

 private:
  io::ReadFile file_;
};

class PictureTask final : public tasks::Task {
 public:
  PictureTask() {
    inputs_ = {{.name = "pixels", .dtype = ir::DType::kU8, .shape = {3, 5}},
               {.name = "label", .padding_bits = datasets::element_bits(ops::kIgnoreTarget)}};
  }
  [[nodiscard]] tasks::Unit unit() const override { return {.name = "pictures"}; }
  tasks::Outputs forward(ir::Builder& b, const models::Model& model, std::span<const ir::ValueId> inputs,
                         const tasks::LossOperands& operands) const override {
    const ir::ValueId scores = scores_of(b, model, inputs, operands.training);
    const ir::ValueId labels = ops::reshape(b, inputs[1], {b.type(inputs[1]).shape.dim(0), 1});
    return {ops::cross_entropy(b, scores, labels, operands.grad_scale, operands.acc).loss,
            operands.logits ? scores : ir::ValueId{}};
  }
  ir::ValueId logits(ir::Builder& b, const models::Model& model,
                     std::span<const ir::ValueId> inputs) const override {
    return scores_of(b, model, inputs, /*training=*/false);
  }
  [[nodiscard]] ir::Shape logits_shape(int64_t batch) const override { return {batch, 1, kClasses}; }
  Result<std::unique_ptr<datasets::ExampleSource>> open_source(
      const datasets::DataFiles& files, const datasets::SourceOptions& /*options*/) const override {
    PLIMSOLL_ASSIGN(io::ReadFile file, io::ReadFile::open(files.paths.front()));
    return std::unique_ptr<datasets::ExampleSource>(std::make_unique<PictureSource>(std::move(file)));
  }
  void draw(uint64_t seed, datasets::ExampleRow row) const override {
    for (std::byte& pixel : row[0]) pixel = static_cast<std::byte>(seed = seed * 6364136223846793005ULL + 1);
    datasets::row_as<int32_t>(row[1])[0] = static_cast<int32_t>(seed % kClasses);
  }

 private:
  static ir::ValueId scores_of(ir::Builder& b, const models::Model& model,
                               std::span<const ir::ValueId> inputs, bool training) {
    if (const models::ImageModel* images = models::as_image_model(model)) {
      const ir::ValueId pixels = ops::cast(b, inputs[0], ir::DType::kF32);  // of 5 x 1, in three channels
      const ir::ValueId image = ops::reshape(b, pixels, {b.type(pixels).shape.dim(0), kChannels, 1, 3});
      return images->logits(b, {.pixels = image, .training = training});
    }
    return dynamic_cast<const PictureModel&>(model).logits(b, inputs[0], training);
  }
};

class PictureRun : public testing::Test {
 protected:
  /// The label's own pixels are bright.
  void SetUp() override {
    std::string records;
    for (int64_t i = 0; i < kExamples; ++i) {
      const int64_t label = i * 7 % kClasses;
      for (int64_t p = 0; p < kPixels; ++p)
        records.push_back(static_cast<char>(p % kClasses == label ? 3 : (i + p) % 2));
      records.push_back(static_cast<char>(label));
    }
    folder_.write("pictures", records);
    records_ = records;
  }

  [[nodiscard]] settings::RunConfig config(const std::vector<std::string>& overrides = {}) const {
    const std::string file = folder_.path("pictures");
    auto parsed = settings::parse_run_config(
        "model: {config: {model_type: pictures}}\ndata: {train: " + file + ", eval: " + file +
            ", shuffle: false}\noutput: {dir: " + folder_.path("out") +
            "}\ntraining: {global_batch_size: 6, micro_batch_size: 3, max_steps: 20, learning_rate: 0.05, "
            "eval_steps: 20}\nruntime: {threads: 2}\n",
        "run.yaml", overrides);
    EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message());
    return std::move(*parsed);
  }

  /// What prepare_model makes of a run whose model and task are in the lists.
  [[nodiscard]] Result<strategy::Prepared> prepare(const settings::RunConfig& run) {
    std::unique_ptr<models::Model> model = std::make_unique<PictureModel>(has_norm_);
    if (!model_config_.empty()) {
      PLIMSOLL_ASSIGN(model, models::make_model(*io::parse_config_json(model_config_, "config.json")));
    }
    PLIMSOLL_TRY(models::select(*model, settings::selection_of(run.training)));
    model->set_norm_statistics({});
    auto task = std::make_unique<PictureTask>();
    const datasets::LoaderOptions loader = preprocessing::loader_options(run, task->inputs());
    strategy::PrepareOptions options{.num_threads = 2};
    options.buckets = preprocessing::Buckets{.lengths = {run.data.sequence_length}};
    strategy::Prepared prepared{
        .model_config = *io::parse_config_json(R"({"model_type": "pictures"})", "config.json"),
        .model = std::move(model),
        .task = std::move(task),
        .loader = loader,
        .buckets = *options.buckets};
    strategy::PlanCache cache;
    return strategy::plan_prepared(run, std::move(prepared), device_->target(), options, cache);
  }

  /// The mean loss of a batch under these weights, in double precision.
  [[nodiscard]] double loss_of(const std::vector<float>& weights, int64_t first) const {
    double sum = 0;
    for (int64_t i = first; i < first + kBatch; ++i) {
      const char* const record = records_.data() + i * kRecord;
      std::array<double, kClasses> scores{};
      double all = 0;
      for (int64_t c = 0; c < kClasses; ++c) {
        for (int64_t p = 0; p < kPixels; ++p)
          scores[static_cast<size_t>(c)] +=
              double{weights[static_cast<size_t>(c * kPixels + p)]} * static_cast<uint8_t>(record[p]);
        all += std::exp(scores[static_cast<size_t>(c)]);
      }
      sum += std::log(all) - scores[static_cast<size_t>(record[kPixels])];
    }
    return sum / kBatch;
  }

  /// A trainer of the run from its first step, or from a checkpoint that it finds.
  [[nodiscard]] std::unique_ptr<Trainer> trainer(const settings::RunConfig& run) {
    auto prepared = prepare(run);
    EXPECT_TRUE(prepared) << (prepared ? "" : prepared.error().message());
    const auto files = preprocessing::unprepared_data(run, /*train=*/true);
    EXPECT_TRUE(files) << (files ? "" : files.error().message());
    auto created = Trainer::create(run, std::move(*prepared), *device_,
                                   {.data = *files, .model_files = checkpoints::ModelFileSet{}});
    EXPECT_TRUE(created) << (created ? "" : created.error().message());
    return created ? std::move(*created) : nullptr;
  }

  const io::TemporaryFolder folder_;
  bool has_norm_ = false;
  std::string model_config_;  ///< of an image model; empty: a PictureModel
  std::string records_;
  std::unique_ptr<runtime::Device> device_ = *devices::make_device({.num_threads = 2});
};

}  // namespace plimsoll::training
