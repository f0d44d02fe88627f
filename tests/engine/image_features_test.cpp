// A head trained over a frozen backbone: the backbone runs once for each image, and the run is the one that
// runs it in every step.
#include "engine/image_features.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "corpora/images/image_files.h"
#include "engine/engine.h"
#include "io/file.h"
#include "io/temporary_folder.h"
#include "settings/settings.h"
#include "strategy/image_features.h"
#include "telemetry/recording_sink.h"

namespace plimsoll::engine {
namespace {

using telemetry::RecordingSink;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kVit =
    "{config: {model_type: vit, image_size: 16, patch_size: 4, hidden_size: 16, intermediate_size: 16, "
    "num_hidden_layers: 1, num_attention_heads: 2, hidden_dropout_prob: 0.0, attention_probs_dropout_prob: "
    "0.0}}";
constexpr const char* kResNet =
    "{config: {model_type: resnet, embedding_size: 8, hidden_sizes: [8, 16], depths: [1, 1], layer_type: "
    "basic}}";

class ImageFeatures : public testing::Test {
 protected:
  void SetUp() override {
    write_images("base", {"dark", "light"}, 3);
    write_images("train", {"blue", "green", "red"}, 5);
    write_images("eval", {"blue", "green", "red"}, 2);
  }
  void write_images(const std::string& folder, const std::vector<std::string>& classes, uint32_t each) {
    for (size_t c = 0; c < classes.size(); ++c) {
      std::filesystem::create_directories(folder_.path(folder + "/" + classes[c]));
      for (uint32_t i = 1; i <= each; ++i)
        folder_.write(folder + "/" + classes[c] + "/" + std::to_string(i) + ".png",
                      corpora::png_of(5 + i, 7, static_cast<uint8_t>(90 * c + 9 * i),
                                      static_cast<uint8_t>(200 - 60 * c), static_cast<uint8_t>(40 * i)));
    }
  }
  [[nodiscard]] settings::RunConfig config(const std::string& model, const std::string& data,
                                           const std::string& out,
                                           const std::vector<std::string>& overrides = {}) const {
    auto parsed = settings::parse_run_config(
        "model: " + model + "\ndata: {train: " + folder_.path(data) +
            ", images: {size: 16}, cache_dir: " + folder_.path("cache") +
            "}\ntraining: {global_batch_size: 6, max_steps: 7, learning_rate: 0.01, lr_scheduler: constant}\n"
            "runtime: {threads: 1}\nmemory: {budget: 1GiB}\noutput: {dir: " +
            folder_.path(out) + "}\n",
        "run.yaml", overrides);
    EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message());
    return parsed ? std::move(*parsed) : settings::RunConfig();
  }
  void pretrain(const std::string& model) {
    telemetry::Sink nobody;
    const Status trained = Engine(nobody).train(config(model, "base", "pretrained"));
    ASSERT_TRUE(trained) << trained.error().message();
  }
  /// Trains a fresh head on three other classes over what `pretrain` has left, and evaluates it twice.
  RecordingSink transfer(const std::string& out, std::vector<std::string> overrides = {}) {
    overrides.insert(overrides.begin(), {"data.eval=" + folder_.path("eval"), "training.eval_steps=4",
                                         "training.micro_batch_size=3"});
    RecordingSink sink{{.events = true}};
    const Status done = Engine(sink).train(
        config("{path: " + folder_.path("pretrained/final") + "}", "train", out, overrides));
    EXPECT_TRUE(done) << (done ? "" : done.error().message());
    return sink;
  }
  [[nodiscard]] std::string weights(const std::string& out) const {
    auto text = io::read_small_file(folder_.path(out + "/final/model.safetensors"), 1 << 24);
    EXPECT_TRUE(text);
    return text ? *text : "";
  }
  const io::TemporaryFolder folder_;
};

constexpr const char* kComputed = "computed the features of 21 images";

TEST_F(ImageFeatures, GiveTheRunThatComputesThemInEveryStep) {
  for (const char* model : {kVit, kResNet}) {
    const std::string name = model == kVit ? "vit" : "resnet";
    std::filesystem::remove_all(folder_.path("pretrained"));
    pretrain(model);
    const std::string freeze = "training.freeze=['" + name + ".*']";
    for (const char* precision : {"fp32", "bf16"}) {
      const std::string out = name + precision, in = std::string("training.precision=") + precision;
      const RecordingSink cached = transfer(out, {freeze, in});
      EXPECT_THAT(cached.messages, Contains(HasSubstr(kComputed)));
      const RecordingSink whole =
          transfer(out + "-whole", {freeze, in, "debug.dump_dir=" + folder_.path(out + "-dump")});
      EXPECT_THAT(whole.messages, Not(Contains(HasSubstr("features of"))));
      EXPECT_EQ(weights(out), weights(out + "-whole")) << out;
    }
  }
}

TEST_F(ImageFeatures, AreComputedOnce) {
  pretrain(kVit);
  const std::string freeze = "training.freeze=['vit.*']";
  EXPECT_THAT(transfer("first", {freeze}).messages, Contains(HasSubstr(kComputed)));
  EXPECT_THAT(transfer("second", {freeze, "training.learning_rate=0.02"}).messages,
              Contains(HasSubstr("lie in the cache")));
  EXPECT_THAT(transfer("third", {freeze, "training.precision=bf16"}).messages,
              Contains(HasSubstr(kComputed)));
}

TEST_F(ImageFeatures, AreOfNoUseWhereTheBackboneDraws) {
  std::string model = kVit;
  model.replace(model.find("0.0"), 3, "0.1");
  pretrain(model);
  EXPECT_THAT(transfer("out", {"training.freeze=['vit.*']"}).messages,
              Not(Contains(HasSubstr("features of"))));
}

TEST_F(ImageFeatures, AreOfNoUseWhereSomethingBelowTheHeadChanges) {
  pretrain(kVit);
  const std::string freeze = "training.freeze=['vit.*']";
  int count = 0;
  for (const std::vector<std::string>& how :
       {std::vector<std::string>{"training.freeze=['vit.embeddings.*']"},
        {freeze, "data.images.augment=[flip]"},
        {freeze, "data.images.mixup=0.2"}})
    EXPECT_THAT(transfer("out" + std::to_string(++count), how).messages,
                Not(Contains(HasSubstr("features of"))))
        << how.back();
}

/// A budget that the steps on features keep and the pass does not: both commands judge the pass, too.
TEST_F(ImageFeatures, OfAPassThatDoesNotFitAreNotRead) {
  // Its weights, which the pass alone reads, take more than what a step needs beside the head.
  const std::string wide =
      "{config: {model_type: vit, image_size: 16, patch_size: 4, hidden_size: 768, intermediate_size: 16, "
      "num_hidden_layers: 1, num_attention_heads: 2}}";
  pretrain(wide);
  const auto planned = [&](const std::string& budget) {
    const auto run = config("{path: " + folder_.path("pretrained/final") + "}", "train", "out",
                            {"training.freeze=['vit.*']", "training.micro_batch_size=6",
                             "memory.recompute=none", "memory.budget=" + budget});
    telemetry::Sink nobody;
    auto prepared = Engine::plan(run, {});
    EXPECT_TRUE(prepared) << (prepared ? "" : prepared.error().message());
    const Status trained = Engine(nobody).train(run);
    const bool is_refused = !trained && trained.error().code == ErrorCode::kDoesNotFit;
    EXPECT_EQ(prepared->report.fits, static_cast<bool>(trained)) << budget;
    EXPECT_EQ(!prepared->report.fits, is_refused) << budget;
    return std::move(*prepared);
  };
  const auto fits = planned("1GiB");
  ASSERT_NE(strategy::read_features(*fits.task), nullptr);
  const auto pass = std::ranges::find(fits.report.phases, "features", &planner::PhaseBytes::name);
  ASSERT_NE(pass, fits.report.phases.end());
  const int64_t session = fits.report.process_peak_bytes();
  const int64_t of_pass =
      pass->persistent_bytes + pass->arena_bytes + pass->host_bytes + fits.report.overhead_bytes;
  ASSERT_GT(of_pass, session);
  std::filesystem::remove_all(folder_.path("cache"));  // features that lie there need no pass
  const auto between = planned(std::to_string((session + of_pass) / 2));
  EXPECT_EQ(strategy::read_features(*between.task), nullptr);
}

}  // namespace
}  // namespace plimsoll::engine
