// The list of families: each preset makes a model, and an unknown family is refused by name.
#include "models/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "forward.h"
#include "models/families.h"
#include "models/presets.h"

namespace plimsoll::models {
namespace {

using testing::HasSubstr;

TEST(ModelTest, EveryPresetIsAModelThatBuilds) {
  for (const std::string& name : preset_names()) {
    const auto model = make_model(*preset_config(name));
    ASSERT_TRUE(model) << name;
    expect_views_cover(**model);
    std::set<std::string> names;
    size_t count = 0;
    for (const Parameter& p : (*model)->parameters())
      for (const ParameterView& view : p.views) names.insert(view.name), ++count;
    EXPECT_EQ(names.size(), count) << name;
    const LanguageModel* language = as_language_model(**model);
    if (language == nullptr) continue;  // tests/models/image_model_test.cpp
    const ForwardGraph f = forward_graph(*language, 1, 3);
    if (language->is_bidirectional())  // no head: the rows that one would read
      EXPECT_EQ(f.type.shape.dim(1), 3) << name;
    else
      EXPECT_EQ(f.type.shape, (ir::Shape{1, 3, language->vocab_size()})) << name;
  }
}

TEST(ModelTest, RefusesAnUnknownFamily) {
  const auto config = io::parse_config_json(R"({"model_type": "mamba"})", "config.json");
  ASSERT_TRUE(config);
  const auto model = make_model(*config);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, ErrorCode::kBadData);
  EXPECT_THAT(model.error().message(),
              HasSubstr("model_type is \"mamba\", expected one of " + family_names()));
}

TEST(ModelTest, TellsWhichFieldsItPassedOver) {
  const auto model =
      model_of(R"({"model_type": "gpt2", "vocab_size": 10, "n_embd": 4, "n_layer": 1, "n_head": 2,
    "n_positions": 8, "my_field": 1})");
  EXPECT_THAT(model->unknown_fields(), testing::ElementsAre("my_field"));
}

}  // namespace
}  // namespace plimsoll::models
