// Each preset reads, has the published size and no field that its family does not know.
#include "models/presets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "models/families.h"

namespace plimsoll::models {
namespace {

using testing::HasSubstr;

TEST(Presets, HaveTheirPublishedSizes) {
  for (const PresetInfo& preset : presets()) {
    const auto config = preset_config(preset.name);
    ASSERT_TRUE(config) << preset.name;
    const auto model = models::make_model(*config);
    ASSERT_TRUE(model) << model.error().message();
    EXPECT_EQ((*model)->num_parameters(), preset.parameters) << preset.name;
    EXPECT_TRUE((*model)->unknown_fields().empty()) << preset.name;
  }
}

TEST(Presets, AreOfEveryFamily) {
  std::set<std::string> found;
  for (const std::string& name : preset_names()) found.insert(*preset_config(name)->model_type());
  for (const auto family : kFamilies) EXPECT_TRUE(found.contains(std::string(family().model_type)));
  EXPECT_EQ(found.size(), kFamilies.size());
}

TEST(Presets, NamesTheNearest) {
  const auto config = preset_config("llama2-7b");
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(config.error().hint, HasSubstr("llama-2-7b"));
}

TEST(Presets, AreFoundByTheHubsSpellings) {
  struct Row {
    const char *spelling, *name;
  };
  for (const Row& row :
       {Row{"meta-llama/Llama-3-8B", "llama-3-8b"}, Row{"meta-llama/Meta-Llama-3-8B", "llama-3-8b"},
        Row{"meta-llama/Llama-2-7b-hf", "llama-2-7b"}, Row{"Qwen/Qwen2.5-0.5B-Instruct", "qwen2.5-0.5b"},
        Row{"mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b-v0.3"}, Row{"openai-community/gpt2", "gpt2"},
        Row{"GPT2-XL", "gpt2-xl"}, Row{"TinyLlama/TinyLlama-1.1B-Chat-v1.0", "tinyllama-1.1b"}})
    EXPECT_EQ(find_preset(row.spelling), row.name) << row.spelling;
  for (const char* unknown : {"", "/", "llama", "meta-llama/Llama-9-8B", "qwen2.5-0.5b-coder"})
    EXPECT_FALSE(find_preset(unknown)) << unknown;
  for (const PresetInfo& preset : presets()) {
    EXPECT_EQ(find_preset(preset.hub_id), preset.name);
    EXPECT_FALSE(preset.licence.empty()) << preset.name;
  }
}

}  // namespace
}  // namespace plimsoll::models
