// What a mistyped or foreign key is taken to have meant.
#include "settings/run_document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "settings/run_config.h"

namespace plimsoll::settings {
namespace {

std::string hint_for(const std::string& key) {
  const std::vector<std::string> overrides = {key + "=x"};
  const auto run = parse_run_config("{model: {preset: gpt2}}", "run.yaml", overrides);
  return run ? "it is taken" : run.error().hint;
}

TEST(RunDocument, NamesTheSettingThatWasMeant) {
  const std::pair<const char*, const char*> rows[] = {{"lora.rank", "lora.r"},
                                                      {"lora.lora_r", "lora.r"},
                                                      {"lora.alpha", "lora.lora_alpha"},
                                                      {"lora.dropout", "lora.lora_dropout"},
                                                      {"lora_target_modules", "lora.target_modules"},
                                                      {"model.name", "model.path"},
                                                      {"model.model_name", "model.path"},
                                                      {"data.path", "data.train"},
                                                      {"data.val", "data.eval"},
                                                      {"output.path", "output.dir"},
                                                      {"training.device", "runtime.device"},
                                                      {"training.lr", "training.learning_rate"},
                                                      {"training.learning_rte", "training.learning_rate"}};
  for (const auto& [key, meant] : rows)
    EXPECT_EQ(hint_for(key), std::string("did you mean ") + meant + "?") << key;
}

}  // namespace
}  // namespace plimsoll::settings
