// The classes of a run over images: the model's where the data has just these, else the data's.
#include "preprocessing/image_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plimsoll::preprocessing {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kWhole =
    R"({"model_type": "vit", "architectures": ["ViTForImageClassification"], "id2label": {"0": "dog", "1": "cat"}})";
constexpr const char* kBare = R"({"model_type": "vit", "architectures": ["ViTModel"]})";

io::ConfigJson config_of(const char* json) { return *io::parse_config_json(json, "config.json"); }

corpora::LabelSummary names(std::set<std::string> all) {
  corpora::LabelSummary found;
  const float zero = 0;
  for (size_t i = 0; i < all.size(); ++i) found.add(corpora::RawLabelKind::kName, {&zero, 1});
  found.all_names = std::move(all);
  return found;
}

corpora::LabelSummary numbers(float largest) {
  corpora::LabelSummary found;
  found.add(corpora::RawLabelKind::kInteger, {&largest, 1});
  return found;
}

Result<io::Labels> labels_of(const char* model, const corpora::LabelSummary& found, bool training = true,
                             const std::vector<std::string>& label_names = {}) {
  settings::RunConfig run;
  run.classification.label_names = label_names;
  return image_labels(run, config_of(model), found, training);
}

TEST(ImageLabels, TheModelsClassesKeepTheirIds) {
  const auto labels = labels_of(kWhole, names({"cat", "dog"}));
  ASSERT_TRUE(labels) << labels.error().message();
  EXPECT_THAT(labels->names, ElementsAre("dog", "cat"));
  EXPECT_TRUE(has_head_of(config_of(kWhole), *labels));
  EXPECT_THAT(labels_of(kWhole, numbers(1))->names, ElementsAre("dog", "cat"));
}

TEST(ImageLabels, OtherClassesAreSortedAndNeedAHead) {
  const auto labels = labels_of(kWhole, names({"10", "9"}));
  ASSERT_TRUE(labels) << labels.error().message();
  EXPECT_THAT(labels->names, ElementsAre("9", "10"));
  EXPECT_FALSE(has_head_of(config_of(kWhole), *labels));
  EXPECT_THAT(labels_of(kWhole, names({"cat", "dog", "emu"}))->names, ElementsAre("cat", "dog", "emu"));
  EXPECT_EQ(labels_of(kWhole, numbers(4))->count(), 5);
  EXPECT_THAT(labels_of(kBare, names({"b", "a"}))->names, ElementsAre("a", "b"));
  EXPECT_FALSE(has_head_of(config_of(kBare), *labels_of(kBare, names({"b", "a"}))));
}

TEST(ImageLabels, AnEvaluationTakesTheModels) {
  EXPECT_THAT(labels_of(kWhole, names({"cat"}), /*training=*/false)->names, ElementsAre("dog", "cat"));
  EXPECT_THAT(labels_of(kWhole, names({"emu", "gnu"}), /*training=*/false)->names, ElementsAre("dog", "cat"))
      << "the labels that are none of them are refused with their places";
}

TEST(ImageLabels, SettingsNameThem) {
  const auto labels = labels_of(kWhole, names({"cat", "dog"}), true, {"cat", "dog", "emu"});
  ASSERT_TRUE(labels) << labels.error().message();
  EXPECT_THAT(labels->names, ElementsAre("cat", "dog", "emu"));
}

TEST(ImageLabels, SettingsOverruleTheModelsHeadInATrainingAlone) {
  settings::RunConfig names, count, same;
  names.classification.label_names = {"cat", "dog", "emu"};
  count.classification.num_labels = 3;
  same.classification.num_labels = 2;
  for (const auto& [run, is_whole] : {std::pair{&names, false}, {&count, false}, {&same, true}}) {
    const auto training = image_label_request(*run, config_of(kWhole), /*training=*/true);
    ASSERT_TRUE(training);
    EXPECT_EQ(training->whole, is_whole);
    EXPECT_TRUE(corpora::labels_without_data(*training)) << "before the images are listed";
    EXPECT_TRUE(image_label_request(*run, config_of(kWhole), /*training=*/false)->whole);
  }
}

constexpr const char* kNameless =
    R"({"model_type": "vit", "architectures": ["ViTForImageClassification"], "num_labels": 2})";

/// The order that name_image_ids returns, and whether the labels have become names.
std::pair<std::vector<std::string>, bool> named(const char* model, bool training,
                                                const std::vector<std::string>& label_names = {},
                                                std::vector<std::string> second = {"worm", "ant"}) {
  settings::RunConfig run;
  run.classification.label_names = label_names;
  corpora::ImageEntries train, eval;
  for (corpora::ImageEntries* entries : {&train, &eval}) {
    entries->places = {"x.parquet"};
    entries->images.push_back({.kind = corpora::RawLabelKind::kInteger, .value = 1});
  }
  train.id_names[0] = {"worm", "ant"};
  eval.id_names[0] = std::move(second);
  corpora::ImageEntries* const sources[] = {&train, &eval};
  const auto order = name_image_ids(run, config_of(model), sources, training);
  EXPECT_TRUE(order);
  EXPECT_EQ(train.images[0].kind, eval.images[0].kind);
  return {*order, train.images[0].kind == corpora::RawLabelKind::kName};
}

TEST(ImageLabels, IdsOfTheDataTakeItsNames) {
  using Named = std::pair<std::vector<std::string>, bool>;
  const Named by_name = {{"worm", "ant"}, true}, by_id = {{}, false};
  EXPECT_EQ(named(kBare, true), by_name);
  EXPECT_EQ(named(kWhole, true), by_name) << "the model's classes are others";
  EXPECT_EQ(named(kWhole, false), by_name);
  EXPECT_EQ(named(kNameless, true), by_id) << "the head was trained for these ids";
  EXPECT_EQ(named(kNameless, false), by_id);
  EXPECT_EQ(named(kBare, true, {"a", "b"}), by_id) << "the settings name them";
  EXPECT_EQ(named(kBare, true, {}, {"ant", "worm"}), (Named{{}, true})) << "two orders are none";
}

TEST(ImageLabels, NewClassesKeepTheOrderOfTheirIds) {
  settings::RunConfig run;
  const std::vector<std::string> order = {"worm", "bee", "ant"};
  const auto labels = image_labels(run, config_of(kBare), names({"ant", "worm"}), true, order);
  ASSERT_TRUE(labels) << labels.error().message();
  EXPECT_THAT(labels->names, ElementsAre("worm", "ant")) << "of those that there are";
  EXPECT_THAT(image_labels(run, config_of(kBare), names({"ant", "worm", "fly"}), true, order)->names,
              ElementsAre("ant", "fly", "worm"));
}

TEST(ImageLabels, AnotherProblemIsRefused) {
  settings::RunConfig run;
  run.classification.problem_type = "multi_label";
  const auto refused = image_label_request(run, config_of(kBare), true);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("images have one label each"));
}

}  // namespace
}  // namespace plimsoll::preprocessing
