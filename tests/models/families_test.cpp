// What holds for every family on the list, by its sample: it is read whole, trains on odd sizes, and computes
// what the interpreter computes.
#include "models/families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "forward.h"
#include "image_forward.h"
#include "models/classifier.h"
#include "models/presets.h"

namespace plimsoll::models {
namespace {

class FamilyTest : public testing::TestWithParam<const Family*> {
 protected:
  [[nodiscard]] static std::unique_ptr<LanguageModel> sample() {
    return model_of(std::string(GetParam()->sample));
  }
};

TEST_P(FamilyTest, ItsSampleIsAModelOfIt) {
  EXPECT_TRUE((GetParam()->parse == nullptr) != (GetParam()->make == nullptr));
  const auto model = sample();
  EXPECT_TRUE(model->unknown_fields().empty());
  EXPECT_EQ(model->vocab_size(), 211);
  expect_views_cover(*model);
  for (const Parameter& p : model->parameters())
    EXPECT_EQ(p.kind == ParameterKind::kVector, p.shape.rank() == 1) << p.name;
  expect_forward_agrees(*model, 2, 37);
}

TEST_P(FamilyTest, ItsSizesHaveTheNamesOfItsConfig) {
  const io::ConfigJson config = *io::parse_config_json(GetParam()->sample, "config.json");
  const SizeFields& f = GetParam()->fields;
  for (const FieldNames& names : {f.layers, f.hidden, f.heads, f.positions, f.vocabulary})
    EXPECT_TRUE(std::ranges::any_of(names, [&](auto name) { return config.fields().find(name) != nullptr; }))
        << names[0];
}

INSTANTIATE_TEST_SUITE_P(Each, FamilyTest, testing::ValuesIn([] {
                           std::vector<const Family*> list;
                           for (const auto family : kLanguageFamilies) list.push_back(&family());
                           return list;
                         }()),
                         [](const auto& test) { return std::string(test.param->model_type); });

/// What holds for every family of image models.
class ImageFamilyTest : public testing::TestWithParam<const Family*> {
 protected:
  [[nodiscard]] static std::unique_ptr<ImageModel> sample() {
    return image_model_of(std::string(GetParam()->sample));
  }
};

TEST_P(ImageFamilyTest, ItsSampleIsAModelOfIt) {
  EXPECT_NE(GetParam()->make, nullptr);
  EXPECT_TRUE(is_image_family(*GetParam()));
  const auto model = sample();
  EXPECT_TRUE(model->unknown_fields().empty());
  EXPECT_EQ(model->num_labels(), 5);
  expect_views_cover(*model);
  for (const Parameter& p : model->parameters()) {
    EXPECT_EQ(p.kind == ParameterKind::kVector, p.shape.rank() == 1) << p.name;
    EXPECT_EQ(p.kind == ParameterKind::kFilters, p.shape.rank() == 4) << p.name;
    EXPECT_EQ(model->is_of_head(p.name), p.name.starts_with("classifier")) << p.name;
    EXPECT_TRUE(model->is_of_head(p.name) || p.name.starts_with(model->base_prefix())) << p.name;
  }
}

TEST_P(ImageFamilyTest, ComputesWhatTheInterpreterComputes) { expect_images_agree(*sample(), 3, 35, 35); }

TEST_P(ImageFamilyTest, HasAHeadOfTheLabels) {
  const io::ConfigJson config = *io::parse_config_json(GetParam()->sample, "config.json");
  const auto relabelled = as_image_classifier(config, {io::ProblemType::kSingleLabel, {"a", "b"}});
  ASSERT_TRUE(relabelled);
  const auto model = make_image_model(*relabelled);
  ASSERT_TRUE(model);
  EXPECT_EQ((*model)->num_labels(), 2);
  EXPECT_FALSE((*model)->ignores_tensor("classifier.weight"));
}

INSTANTIATE_TEST_SUITE_P(Each, ImageFamilyTest, testing::ValuesIn([] {
                           std::vector<const Family*> list;
                           for (const auto family : kImageFamilies) list.push_back(&family());
                           return list;
                         }()),
                         [](const auto& test) { return std::string(test.param->model_type); });

TEST(Families, EachHasAFileAndATest) {
  const std::filesystem::path tests = PLIMSOLL_TEST_DIR;
  for (const auto family : kFamilies) {
    std::string name(family().model_type);
    EXPECT_EQ(find_family(name), &family());
    std::ranges::replace(name, '-', '_');
    EXPECT_TRUE(std::filesystem::exists(tests / "../src/models" / (name + ".cpp"))) << name;
  }
  EXPECT_EQ(find_family("mamba"), nullptr);
}

}  // namespace
}  // namespace plimsoll::models
