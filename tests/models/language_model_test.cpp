// A model may be a language model or another: what asks for a vocabulary asks for a language model.
#include "models/language_model.h"

#include <gtest/gtest.h>

#include "forward.h"

namespace plimsoll::models {
namespace {

TEST(LanguageModelTest, IsOneKindOfModel) {
  const Model other;
  EXPECT_EQ(as_language_model(other), nullptr);
  EXPECT_FALSE(other.tied_head());
  EXPECT_EQ(other.base_prefix(), "");
  const std::unique_ptr<Model> model = model_of(
      R"({"model_type": "gpt2", "vocab_size": 10, "n_embd": 4, "n_layer": 1, "n_head": 2, "n_positions": 8})");
  EXPECT_EQ(as_language_model(*model), model.get());
  EXPECT_EQ(language_model(*model).vocab_size(), 10);
  EXPECT_EQ(language_model(*model).max_positions(), 8);
}

TEST(LanguageModelTest, RefusesWhatMakeModelRefuses) {
  const auto made = make_language_model(*io::parse_config_json(R"({"model_type": "mamba"})", "config.json"));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kBadData);
}

}  // namespace
}  // namespace plimsoll::models
