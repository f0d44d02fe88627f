// Each preset reads, has the published size and no field that its family does not know.
#include "models/presets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "models/model.h"

namespace plimsoll::models {
namespace {

using testing::HasSubstr;

TEST(Presets, HaveTheirFamiliesSizes) {
  struct Row {
    const char* name;
    int64_t parameters;
  };
  // As published or counted by transformers.
  const Row rows[] = {
      {"llama-2-7b", 6'738'415'616},       {"llama-2-13b", 13'015'864'320},
      {"llama-2-70b", 68'976'648'192},     {"llama-3-8b", 8'030'261'248},
      {"llama-3.1-8b", 8'030'261'248},     {"llama-3.1-70b", 70'553'706'496},
      {"llama-3.2-1b", 1'235'814'400},     {"llama-3.2-3b", 3'212'749'824},
      {"smollm-135m", 134'515'008},        {"smollm2-135m", 134'515'008},
      {"smollm2-360m", 361'821'120},       {"smollm2-1.7b", 1'711'376'384},
      {"tinyllama-1.1b", 1'100'048'384},   {"gpt2", 124'439'808},
      {"gpt2-medium", 354'823'168},        {"gpt2-large", 774'030'080},
      {"gpt2-xl", 1'557'611'200},          {"llama-3-70b", 70'553'706'496},
      {"llama-3.1-405b", 405'853'388'800}, {"mistral-7b-v0.1", 7'241'732'096},
      {"mistral-7b-v0.3", 7'248'023'552},  {"qwen2.5-0.5b", 494'032'768},
      {"qwen2.5-1.5b", 1'543'714'304},     {"qwen2.5-3b", 3'085'938'688},
      {"qwen2.5-7b", 7'615'616'512},       {"qwen2.5-14b", 14'770'033'664},
      {"qwen2.5-32b", 32'763'876'352},     {"qwen2.5-72b", 72'706'203'648},
      {"qwen3-0.6b", 596'049'920},         {"qwen3-1.7b", 1'720'574'976},
      {"qwen3-4b", 4'022'468'096},         {"qwen3-8b", 8'190'735'360},
      {"smollm3-3b", 3'075'098'624},       {"qwen3-14b", 14'768'307'200},
      {"qwen3-32b", 32'762'123'264},
  };
  std::set<std::string> tested;
  for (const Row& row : rows) {
    const auto config = preset_config(row.name);
    ASSERT_TRUE(config) << row.name;
    tested.insert(row.name);
    const auto model = models::make_model(*config);
    ASSERT_TRUE(model) << model.error().message();
    EXPECT_EQ((*model)->num_parameters(), row.parameters) << row.name;
    EXPECT_TRUE((*model)->unknown_fields().empty()) << row.name;
  }
  const auto names = preset_names();
  EXPECT_EQ(tested, std::set<std::string>(names.begin(), names.end()));
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
