// The list of families: each preset makes a model, and an unknown family is refused by name.
#include "models/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "forward.h"
#include "models/presets.h"

namespace plimsoll::models {
namespace {

using testing::HasSubstr;

TEST(ModelTest, PresetsHaveTheirFamiliesSizes) {
  struct Row {
    const char* name;
    int64_t parameters, matmul_parameters;
  };
  // As published; a matrix product takes all but the norms and an embedding that is no head.
  const Row rows[] = {
      {"llama-2-7b", 6'738'415'616, 6'738'415'616 - 65 * 4096 - 32000 * 4096},
      {"llama-3-8b", 8'030'261'248, 8'030'261'248 - 65 * 4096 - 128256 * 4096},
      {"llama-3.2-1b", 1'235'814'400, 1'235'814'400 - 33 * 2048},
      {"smollm2-135m", 134'515'008, 134'515'008 - 61 * 576},
      // Biases and positions as well.
      {"gpt2", 124'439'808, 124'439'808 - 12 * 13 * 768 - 2 * 768 - 1024 * 768},
  };
  for (const Row& row : rows) {
    const auto model = make_model(*preset_config(row.name));
    ASSERT_TRUE(model) << row.name;
    EXPECT_EQ((*model)->num_parameters(), row.parameters) << row.name;
    EXPECT_EQ((*model)->num_matmul_parameters(), row.matmul_parameters) << row.name;
  }
}

TEST(ModelTest, EveryPresetIsAModelThatBuilds) {
  for (const std::string& name : preset_names()) {
    const auto model = make_language_model(*preset_config(name));
    ASSERT_TRUE(model) << name;
    expect_views_cover(**model);
    std::set<std::string> names;
    size_t count = 0;
    for (const Parameter& p : (*model)->parameters())
      for (const ParameterView& view : p.views) names.insert(view.name), ++count;
    EXPECT_EQ(names.size(), count) << name;
    const ForwardGraph f = forward_graph(**model, 1, 3);
    EXPECT_EQ(f.type.shape, (ir::Shape{1, 3, (*model)->vocab_size()})) << name;
  }
}

TEST(ModelTest, RefusesAnUnknownFamily) {
  const auto config = io::parse_config_json(R"({"model_type": "mamba"})", "config.json");
  ASSERT_TRUE(config);
  const auto model = make_model(*config);
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, ErrorCode::kBadData);
  EXPECT_THAT(
      model.error().message(),
      HasSubstr("model_type is \"mamba\", expected one of llama, mistral, qwen2, qwen3, smollm3, gpt2"));
}

TEST(ModelTest, TellsWhichFieldsItPassedOver) {
  const auto model =
      model_of(R"({"model_type": "gpt2", "vocab_size": 10, "n_embd": 4, "n_layer": 1, "n_head": 2,
    "n_positions": 8, "my_field": 1})");
  EXPECT_THAT(model->unknown_fields(), testing::ElementsAre("my_field"));
}

}  // namespace
}  // namespace plimsoll::models
