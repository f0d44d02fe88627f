#include "tasks/task_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace plimsoll::tasks {
namespace {

io::ConfigJson model_with(const std::string& architecture) {
  return *io::parse_config_json("{\"architectures\": [\"" + architecture + "\"]}", "config.json");
}

TEST(TaskList, NamesEachFileOfATask) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(PLIMSOLL_TEST_DIR "/../src/tasks"))
    if (const auto& path = entry.path();
        path.extension() == ".cpp" && !path.stem().string().starts_with("task"))
      files.push_back(path.stem());
  EXPECT_THAT(files, testing::UnorderedElementsAreArray(task_names()));
  for (const std::string_view name : task_names()) EXPECT_EQ(find_task(name)->name, name);
  EXPECT_EQ(find_task("image_captioning"), nullptr);
}

TEST(TaskList, AutoIsTheTaskOfTheModelsHead) {
  const auto chosen = [](std::string_view setting, const std::string& architecture) {
    return (*choose_task(setting, model_with(architecture)))->name;
  };
  EXPECT_EQ(chosen("auto", "LlamaForSequenceClassification"), "sequence_classification");
  EXPECT_EQ(chosen("auto", "LlamaForCausalLM"), "causal_lm");
  EXPECT_EQ(chosen("sequence_classification", "LlamaForCausalLM"), "sequence_classification");
}

TEST(TaskList, RefusesAnotherTasksHead) {
  const auto refused = choose_task("causal_lm", model_with("LlamaForSequenceClassification"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  const auto images =
      choose_task("causal_lm", *io::parse_config_json(R"({"model_type": "vit"})", "config.json"));
  ASSERT_FALSE(images);
  EXPECT_EQ(images.error().hint, "set task=image_classification, or name a causal language model");
  EXPECT_FALSE(choose_task("image_captioning", model_with("LlamaForCausalLM")));
}

}  // namespace
}  // namespace plimsoll::tasks
