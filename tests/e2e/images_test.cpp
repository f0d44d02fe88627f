// Classification of images, from folders to a final model: the same bits however it is carried out, what
// comes of it, what a user gets wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "corpora/images/image_files.h"
#include "image_run.h"
#include "io/json.h"
#include "tensors.h"

namespace plimsoll::e2e {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Result train_images(const std::string& overrides) {
  const Folder folder;
  write_run(folder);
  return result_of(folder, folder.run("train run.yaml --json " + overrides));
}

TEST(Images, HaveTheSameBitsHoweverTheRunIsCarriedOut) {
  const std::string augmented =
      "\"data.images.augment=[random_resized_crop, flip, {color_jitter: {brightness: 0.4}}]\" ";
  const Result whole = train_images(augmented + "runtime.threads=1 data.num_workers=0");
  EXPECT_EQ(std::count(whole.events.begin(), whole.events.end(), '\n'), 7);
  EXPECT_THAT(whole.events, HasSubstr("\"top5_accuracy\": 1"));
  for (const char* how :
       {"training.micro_batch_size=1 runtime.threads=3", "training.micro_batch_size=4 data.num_workers=3",
        "memory.recompute=full debug.poison=true"}) {
    const Result other = train_images(augmented + how);
    EXPECT_EQ(other.events, whole.events) << how;
    EXPECT_TRUE(other.model == whole.model) << how;
  }
  EXPECT_FALSE(train_images("").model == whole.model) << "augmentations change what is learnt";
}

TEST(Images, TheSameBitsComeOfAResume) {
  const Folder folder;
  write_run(folder);
  const std::string augmented = "\"data.images.augment=[flip, {color_jitter: {brightness: 0.4}}]\" ";
  const Result whole = train_images(augmented);
  ASSERT_EQ(folder.run("train run.yaml training.max_steps=4 output.save_steps=4 " + augmented).exit_code, 0);
  const Result rest = result_of(folder, folder.run("train run.yaml output.save_steps=4 --json " + augmented));
  EXPECT_THAT(rest.events, StartsWith("{\"event\": \"step\", \"step\": 5,"));
  EXPECT_TRUE(rest.model == whole.model);
}

/// The patches' filters have second moments by height and width, which no tensor of the model is as large as.
TEST(Images, AdafactorsMomentsOfFiltersAreSaved) {
  const Folder folder;
  write_run(folder);
  const std::string how = "training.optimizer=adafactor training.adafactor.beta1=0.9 ";
  const Result whole = train_images(how + "runtime.threads=1");
  ASSERT_EQ(folder.run("train run.yaml training.max_steps=4 output.save_steps=4 " + how).exit_code, 0);
  const Result rest = result_of(
      folder, folder.run("train run.yaml output.save_steps=4 training.micro_batch_size=2 --json " + how));
  EXPECT_THAT(rest.events, StartsWith("{\"event\": \"step\", \"step\": 5,"));
  EXPECT_TRUE(rest.model == whole.model);
  const std::string saved = folder.read("out/checkpoint-4/optimizer.safetensors");
  EXPECT_THAT(saved,
              HasSubstr("adafactor_filters_moment.row.vit.embeddings.patch_embeddings.projection.weight"));
}

TEST(Images, FinalEvaluatesAndPredicts) {
  const Folder folder;
  write_run(folder);
  const Outcome trained = folder.run("train run.yaml training.max_steps=40 --json");
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("\"images\": "));
  const auto config = io::parse_json(folder.read("out/final/config.json"));
  ASSERT_TRUE(config);
  EXPECT_EQ(config->find("id2label")->find("0")->text, "blue");
  const auto processor = io::parse_json(folder.read("out/final/preprocessor_config.json"));
  ASSERT_TRUE(processor);
  EXPECT_EQ(processor->find("size")->find("height")->integer, 16);
  const Outcome predicted = folder.run("predict --model out/final --data eval");
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_EQ(std::count(predicted.out.begin(), predicted.out.end(), '\n'), 6);
  const auto first = io::parse_json(predicted.out.substr(0, predicted.out.find('\n')));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->find("image")->text, "eval/blue/0.png");
  EXPECT_EQ(first->find("label")->text, "blue");
  EXPECT_EQ(first->find("logits")->items.size(), 2U);
  const Outcome one = folder.run("predict --model out/final --data eval/red/1.png");
  EXPECT_THAT(one.out, HasSubstr("\"label\": \"red\""));
  folder.write("eval.yaml", "model: {path: out/final}\ndata: {eval: eval}\n");
  const Outcome evaluated = folder.run("eval eval.yaml --json");
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
  EXPECT_THAT(evaluated.out, HasSubstr("\"accuracy\": 1"));
  EXPECT_THAT(evaluated.out,
              HasSubstr(R"("confusion_matrix": {"labels": ["blue", "red"], "counts": [[3, 0], [0, 3]]})"));
  EXPECT_THAT(evaluated.out, HasSubstr(R"({"name": "eval/blue/)"));
  EXPECT_THAT(folder.run("eval eval.yaml").out, HasSubstr("confusion matrix"));
  ASSERT_EQ(folder.run("report out --no-plan").exit_code, 0);
  const std::string page = folder.read("report.html");
  EXPECT_THAT(page, HasSubstr("id=\"confusion\""));
  size_t pictures = 0;
  for (size_t at = 0; (at = page.find("<figure class=\"right\"", at)) != std::string::npos; ++at) ++pictures;
  EXPECT_EQ(pictures, 6U);
  EXPECT_THAT(page, HasSubstr("<img alt=\"\" src=\"data:image/png;base64,"));
}

TEST(Images, OtherClassesGetAFreshHead) {
  const Folder folder;
  write_run(folder);
  ASSERT_EQ(folder.run("train run.yaml training.max_steps=1").exit_code, 0);
  std::filesystem::rename(folder.path("train/red"), folder.path("train/rose"));
  folder.write(
      "more.yaml",
      "model: {path: out/final}\ndata: {train: train}\ntraining: {global_batch_size: 4, max_steps: 1}\n"
      "output: {dir: more}\n");
  const Outcome outcome = folder.run("train more.yaml");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto config = io::parse_json(folder.read("more/final/config.json"));
  ASSERT_TRUE(config);
  EXPECT_EQ(config->find("id2label")->find("1")->text, "rose");
}

TEST(Images, LabelNamesGiveTheClassesAnotherOrder) {
  const Folder folder;
  write_run(folder, "classification: {label_names: [red, blue]}\n");
  ASSERT_EQ(folder.run("plan run.yaml").exit_code, 0) << "no image is listed yet";
  const Outcome outcome = folder.run("train run.yaml training.max_steps=1");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(io::parse_json(folder.read("out/final/config.json"))->find("id2label")->find("0")->text, "red");
}

TEST(Images, AdaptersAreMerged) {
  const Folder folder;
  write_run(folder);
  ASSERT_EQ(folder.run("train run.yaml output.dir=base").exit_code, 0);
  const Outcome trained = folder.run(
      "train run.yaml model.config=null model.path=base/final \"lora={r: 2, target_modules: "
      "[query, dense]}\" training.learning_rate=0.1");
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Outcome merged = folder.run("merge --model base/final --adapter out/final --output merged");
  ASSERT_EQ(merged.exit_code, 0) << merged.err;
  const auto logit = [&](const std::string& model) {
    const Outcome answer = folder.run("predict " + model + " --data eval/red/1.png");
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
    return io::parse_json(answer.out)->find("logits")->items[0].number;
  };
  const double own = logit("--model merged"), beside = logit("--model base/final --adapter out/final");
  EXPECT_NEAR(own, beside, 1e-4 * std::abs(beside));
  EXPECT_GT(std::abs(own - logit("--model base/final")), 1e-2);
}

TEST(Images, DumpsNameTensorsAsFilesDo) {
  const Folder folder;
  write_run(folder);
  const Outcome outcome = folder.run(
      "train run.yaml training.max_steps=1 debug.dump_dir=dump \"debug.dump=[loss, gradients, logits]\"");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Tensors tensors = read_tensors(folder.read("dump/step-000001.safetensors"));
  EXPECT_EQ(tensors.at("logits").shape, (std::vector<int64_t>{8, 2}));
  EXPECT_EQ(tensors.at("grad.classifier.weight").shape, (std::vector<int64_t>{2, 24}));
}

TEST(Images, WhatIsWrongIsNamed) {
  const Folder folder;
  write_run(folder);
  folder.write("train/red/bad.png", "no image");
  const Outcome bad = folder.run("train run.yaml");
  EXPECT_EQ(bad.exit_code, 65);
  EXPECT_THAT(bad.err, HasSubstr("train/red/bad.png"));
  EXPECT_EQ(folder.run("train run.yaml data.on_error=skip").exit_code, 0);
  std::filesystem::create_directories(folder.path("eval/green"));
  folder.write("eval/green/1.png", corpora::png_of(8, 8, 0, 200, 0));
  const Outcome unknown = folder.run("train run.yaml data.on_error=skip output.dir=other");
  EXPECT_EQ(unknown.exit_code, 65);
  EXPECT_THAT(unknown.err, HasSubstr("'green'"));
  const Outcome size = folder.run("plan run.yaml data.images.size=17");
  EXPECT_EQ(size.exit_code, 2);
  EXPECT_THAT(size.err, HasSubstr("17 x 17"));
  const Outcome text = folder.run("plan run.yaml task=causal_lm");
  EXPECT_EQ(text.exit_code, 2);
  EXPECT_THAT(text.err, HasSubstr("set task=image_classification"));
  const Outcome idle = folder.run("plan run.yaml \"model={preset: gpt2}\" data.images.size=17");
  EXPECT_EQ(idle.exit_code, 2);
  EXPECT_THAT(idle.err, HasSubstr("data.images.size"));
}

TEST(Images, APlanKnowsWhatReadingTakes) {
  const Folder folder;
  write_run(folder);
  const auto planned_after_training = [&] {
    const Outcome trained = folder.run("train run.yaml --json --resume never");
    EXPECT_EQ(trained.exit_code, 0) << trained.err;
    if (!sanitized()) {  // a sanitizer's own memory is in no plan
      EXPECT_LE(number(trained.out, "measured_peak_bytes"), number(trained.out, "planned_peak_bytes"));
    }
    const Outcome planned = folder.run("plan run.yaml --json");
    EXPECT_EQ(planned.exit_code, 0) << planned.err;
    return number(planned.out, "process_peak_bytes");
  };
  const int64_t small = planned_after_training();
  const Outcome tight = folder.run("train run.yaml output.dir=tight memory.budget=" + std::to_string(small));
  EXPECT_EQ(tight.exit_code, 0) << "before the images are listed it must not count more: " << tight.err;
  folder.write("train/red/large.png", corpora::png_of(3000, 2000, 200, 0, 0));
  EXPECT_GT(planned_after_training(), small + 4 * 3000 * 16 * 3) << "rows of it for each of four threads";
}

}  // namespace
}  // namespace plimsoll::e2e
