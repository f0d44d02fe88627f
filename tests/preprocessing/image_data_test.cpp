// Images made ready: lists, classes and what reading takes; found again, made anew where a file has changed.
#include "preprocessing/image_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "corpora/images/image_files.h"
#include "corpora/labelled/label_file.h"
#include "io/temporary_folder.h"

namespace plimsoll::preprocessing {
namespace {

using corpora::png_of;
using testing::ElementsAre;
using testing::HasSubstr;

class ImageDataTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name :
         {"train/b/1.png", "train/a/1.png", "train/a/2.png", "train/a/3.png", "eval/a/1.png"})
      put(name, png_of(6, 4, 9, 8, 7));
  }
  void put(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories(std::filesystem::path(folder_.path(name)).parent_path());
    folder_.write(name, content);
  }
  [[nodiscard]] settings::RunConfig config(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> overrides = {"data.train=" + folder_.path("train"),
                                          "data.eval=" + folder_.path("eval"),
                                          "output.dir=" + folder_.path("out")};
    overrides.insert(overrides.end(), more.begin(), more.end());
    auto run = settings::parse_run_config(
        "task: image_classification\nmodel: {config: {model_type: vit, image_size: 8}}\n", "run.yaml",
        overrides);
    EXPECT_TRUE(run) << (run ? "" : run.error().message());
    return std::move(*run);
  }
  [[nodiscard]] Result<RunData> prepare(const settings::RunConfig& run, bool train = true) {
    notes_.clear();
    const PrepareDataOptions options{.train = train,
                                     .note = [this](const std::string& note) { notes_.push_back(note); }};
    return ImagePreparation(run, options, *settings::load_model_config(run.model))();
  }
  [[nodiscard]] static int64_t size_of(const datasets::DataFiles& files) {
    return corpora::ImageList::open(files.paths.front())->size();
  }
  const io::TemporaryFolder folder_;
  std::vector<std::string> notes_;
};

TEST_F(ImageDataTest, HasListsClassesAndCounts) {
  const settings::RunConfig run = config();
  const auto data = prepare(run);
  ASSERT_TRUE(data) << data.error().message();
  EXPECT_THAT(data->labels->names, ElementsAre("a", "b"));
  ASSERT_EQ(data->train.size(), 1U);
  EXPECT_EQ(size_of(data->train[0]), 4);
  ASSERT_EQ(data->eval.size(), 1U);
  EXPECT_EQ(data->num_eval, 1);
  EXPECT_GT(data->reading_bytes, 6 * 4 * 3);
  EXPECT_THAT(notes_, testing::Contains("listed 4 images, the largest of 6 x 4 pixels"));
  const auto again = prepare(run);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->train[0].paths, data->train[0].paths);
  EXPECT_TRUE(notes_.empty()) << "nothing was looked at again";
}

TEST_F(ImageDataTest, ALookWritesNothing) {
  const settings::RunConfig run = config();
  const io::ConfigJson model = *settings::load_model_config(run.model);
  const PrepareDataOptions options;
  const auto before = ImagePreparation(run, options, model).look();
  ASSERT_TRUE(before) << before.error().message();
  EXPECT_THAT(before->labels->names, ElementsAre("a", "b"));
  EXPECT_TRUE(before->train.empty());
  EXPECT_FALSE(std::filesystem::exists(folder_.path("out")));
  const auto made = prepare(run);
  ASSERT_TRUE(made);
  const auto after = ImagePreparation(run, options, model).look();
  ASSERT_TRUE(after);
  EXPECT_EQ(after->train[0].paths, made->train[0].paths);
  EXPECT_EQ(after->reading_bytes, made->reading_bytes);
  EXPECT_EQ(after->num_eval, 1);
}

TEST_F(ImageDataTest, IsMadeAnewWhenAnImageChanges) {
  const settings::RunConfig run = config();
  const auto before = prepare(run);
  ASSERT_TRUE(before);
  put("train/a/1.png", png_of(60, 40, 1, 2, 3));
  const auto after = prepare(run);
  ASSERT_TRUE(after);
  EXPECT_NE(after->train[0].paths, before->train[0].paths);
  EXPECT_GT(after->reading_bytes, before->reading_bytes);
}

// A turned picture is held as a whole, so that a list made without orientations says too little.
TEST_F(ImageDataTest, WhatDecidesOnReadingMakesAnotherList) {
  const auto usual = prepare(config());
  ASSERT_TRUE(usual);
  for (const char* setting : {"data.images.orientation=ignore", "data.images.backend=torch"}) {
    const auto other = prepare(config({setting}));
    ASSERT_TRUE(other);
    EXPECT_NE(other->train[0].paths, usual->train[0].paths) << setting;
  }
}

TEST_F(ImageDataTest, ACacheHoldsTheImagesAndIsMadeAgain) {
  const auto plain = prepare(config());
  ASSERT_TRUE(plain);
  const uint64_t content = corpora::ImageList::open(plain->train[0].paths[0])->content_hash();
  for (const char* form : {"jpeg", "u8"}) {
    const settings::RunConfig run = config({std::string("data.images.cache=") + form});
    const auto data = prepare(run);
    ASSERT_TRUE(data) << data.error().message();
    EXPECT_THAT(notes_, testing::Contains(HasSubstr("packed them into")));
    const auto list = corpora::ImageList::open(data->train[0].paths[0]);
    EXPECT_EQ(list->content_hash(), content) << "a resume may change it";
    std::vector<std::byte> scratch(static_cast<size_t>(list->scratch_bytes()));
    const auto image = list->read(1, scratch);
    ASSERT_TRUE(image);
    EXPECT_TRUE(image->is_part);
    EXPECT_EQ(image->name, "a/2.png");
    const std::string pixels = image->path;
    EXPECT_TRUE(prepare(run));
    EXPECT_TRUE(notes_.empty());
    std::filesystem::remove(pixels);
    EXPECT_TRUE(prepare(run));
    EXPECT_TRUE(std::filesystem::exists(pixels));
  }
}

TEST_F(ImageDataTest, TheFirstImagesAreOfAllClasses) {
  const auto data = prepare(config({"data.max_train_samples=2"}));
  ASSERT_TRUE(data) << data.error().message();
  EXPECT_EQ(size_of(data->train[0]), 2);
  EXPECT_THAT(data->labels->names, ElementsAre("a", "b"));
}

TEST_F(ImageDataTest, AShareIsHeldOutByName) {
  for (int i = 0; i < 40; ++i) put("train/a/more" + std::to_string(i) + ".png", png_of(3, 3, 1, 1, 1));
  for (int i = 0; i < 40; ++i) put("train/b/more" + std::to_string(i) + ".png", png_of(3, 3, 2, 2, 2));
  settings::RunConfig run = config({"data.eval=null", "data.eval_fraction=0.25"});
  const auto data = prepare(run);
  ASSERT_TRUE(data) << data.error().message();
  EXPECT_EQ(size_of(data->train[0]) + size_of(data->eval[0]), 84);
  EXPECT_NEAR(static_cast<double>(size_of(data->eval[0])), 21, 14);
  EXPECT_EQ(data->num_eval, size_of(data->eval[0]));
}

TEST_F(ImageDataTest, EvaluationImagesOfAnUnknownClassAreRefused) {
  put("eval/c/1.png", png_of(3, 3, 0, 0, 0));
  const auto data = prepare(config());
  ASSERT_FALSE(data);
  EXPECT_EQ(data.error().code, ErrorCode::kBadData);
  EXPECT_THAT(data.error().message(), HasSubstr("label is 'c', and the labels are a, b"));
  EXPECT_THAT(data.error().where, HasSubstr("eval/c"));
}

TEST_F(ImageDataTest, BadImagesStopTheRunOrAreSkipped) {
  put("train/a/bad.png", "no image");
  const auto refused = prepare(config());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().where, HasSubstr("train/a/bad.png"));
  const auto data = prepare(config({"data.on_error=skip"}));
  ASSERT_TRUE(data) << data.error().message();
  EXPECT_EQ(size_of(data->train[0]), 4);
  EXPECT_THAT(notes_, testing::Contains(HasSubstr("skipped 1 image")));
}

TEST_F(ImageDataTest, FoldersMixByWeight) {
  put("more/a/1.png", png_of(3, 3, 0, 0, 0));
  put("more/c/1.png", png_of(3, 3, 0, 0, 0));
  const auto data = prepare(config(
      {"data.train=[" + folder_.path("train") + ", " + folder_.path("more") + "]", "data.weights=[1, 3]"}));
  ASSERT_TRUE(data) << data.error().message();
  ASSERT_EQ(data->train.size(), 2U);
  EXPECT_EQ(data->train[1].weight, 3);
  EXPECT_THAT(data->labels->names, ElementsAre("a", "b", "c"));
}

TEST_F(ImageDataTest, ATableIsAsGoodAsFolders) {
  folder_.write("t.csv", "image,label\ntrain/a/1.png,x\ntrain/b/1.png,y\n");
  const auto data = prepare(config({"data.train=" + folder_.path("t.csv"), "data.eval=null"}));
  ASSERT_TRUE(data) << data.error().message();
  EXPECT_THAT(data->labels->names, ElementsAre("x", "y"));
}

}  // namespace
}  // namespace plimsoll::preprocessing
