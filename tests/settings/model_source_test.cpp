// Where a run's model comes from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/temporary_folder.h"
#include "models/families.h"
#include "settings/run_config.h"

namespace plimsoll::settings {
namespace {

using testing::HasSubstr;

TEST(LoadModelConfig, FindsTheModel) {
  const io::TemporaryFolder folder;
  folder.write(
      "config.json",
      R"({"model_type": "llama", "vocab_size": 10, "rope_scaling": {"factor": 2, "type": "linear"}})");
  ModelSettings model{.path = folder.path(),
                      .overrides = io::Tree::map({{"vocab_size", io::Tree::of(int64_t{20})}})};
  EXPECT_EQ(*load_model_config(model)->integer("vocab_size", {1, 100}), 20);
  model.path = folder.path("config.json");
  EXPECT_TRUE(load_model_config(model));
  EXPECT_EQ(*load_model_config({.preset = "gpt2"})->integer("n_layer", {1, 100}), 12);
  EXPECT_EQ(*load_model_config({.config = io::Tree::map({{"n_layer", io::Tree::of(int64_t{3})}})})
                 ->integer("n_layer", {1, 100}),
            3);
  EXPECT_EQ(load_model_config({}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(load_model_config({.preset = "gpt3"}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(load_model_config({.path = folder.path("none")}).error().code, ErrorCode::kBadData);
  const auto hub = load_model_config({.path = "nobody/nothing-of-that-name"});
  ASSERT_FALSE(hub);
  EXPECT_EQ(hub.error().code, ErrorCode::kBadData);
  EXPECT_THAT(hub.error().hint, HasSubstr("hf download nobody/nothing-of-that-name"));
}

TEST(CheckOverrides, NamesAMistypedField) {
  const ModelSettings model{.preset = "smollm-135m",
                            .overrides = io::Tree::map({{"num_hiden_layers", io::Tree::of(int64_t{4})}})};
  const auto config = load_model_config(model);
  ASSERT_TRUE(config);
  ASSERT_TRUE(models::find_family("llama")->parse(*config));
  const auto status = check_overrides(model, *config);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(status.error().hint, HasSubstr("num_hidden_layers"));
  EXPECT_TRUE(check_overrides({.preset = "smollm-135m"}, *config));
}

}  // namespace
}  // namespace plimsoll::settings
