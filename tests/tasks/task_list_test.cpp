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
  const auto encoder = [](std::string_view setting, const std::string& architecture) {
    const auto task = choose_task(
        setting, *io::parse_config_json(
                     R"({"model_type": "bert", "architectures": [")" + architecture + "\"]}", "config.json"));
    return task ? std::string((*task)->name) : task.error().hint;
  };
  EXPECT_EQ(encoder("auto", "BertForMaskedLM"), "masked_lm");
  EXPECT_EQ(encoder("auto", "BertForPreTraining"), "masked_lm");
  EXPECT_EQ(encoder("auto", "BertForSequenceClassification"), "sequence_classification");
  EXPECT_EQ(encoder("masked_lm", "BertForSequenceClassification"), "masked_lm") << "the other head is left";
  EXPECT_EQ(encoder("sequence_classification", "BertForMaskedLM"), "sequence_classification");
  EXPECT_EQ(encoder("auto", "BertForQuestionAnswering"), "question_answering");
  EXPECT_EQ(encoder("question_answering", "BertForMaskedLM"), "question_answering");
  EXPECT_EQ(encoder("question_answering", "BertModel"), "question_answering");
  EXPECT_EQ(encoder("masked_lm", "BertForQuestionAnswering"), "masked_lm");
  EXPECT_THAT(encoder("auto", "BertModel"), testing::HasSubstr("set task=masked_lm or"));
}

TEST(TaskList, EveryTaskSaysWhatModelsOfItAre) {
  std::vector<std::string_view> pipelines;
  for_each_task([&](const TaskDef& def) {
    EXPECT_FALSE(def.trains.empty()) << def.name;
    pipelines.push_back(def.pipeline);
    EXPECT_EQ(def.masks, def.name == "masked_lm");
    EXPECT_EQ(def.asks, def.name == "question_answering");
  });
  EXPECT_THAT(pipelines, testing::UnorderedElementsAre("text-generation", "fill-mask", "text-classification",
                                                       "question-answering", "image-classification"));
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
  const auto masked =
      choose_task("masked_lm", *io::parse_config_json(R"({"model_type": "llama"})", "config.json"));
  ASSERT_FALSE(masked);
  EXPECT_EQ(masked.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(masked.error().hint, testing::HasSubstr("set task=causal_lm"));
  for (const char* other : {"llama", "vit"}) {
    const auto answers = choose_task(
        "question_answering",
        *io::parse_config_json(std::string(R"({"model_type": ")") + other + "\"}", "config.json"));
    ASSERT_FALSE(answers) << other;
    EXPECT_EQ(answers.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(answers.error().hint, testing::HasSubstr("name a BERT"));
  }
}

/// What says where tokens are cut off and padded to says nothing here, nor does what is of labels.
TEST(TaskList, AnswersReadTheirOwnSettings) {
  const auto reads = [](std::string_view setting) {
    const auto readers = readers_of(setting);
    return std::ranges::find(readers, "question_answering") != readers.end();
  };
  EXPECT_EQ(readers_of("qa.doc_stride"), std::vector<std::string_view>{"question_answering"});
  EXPECT_TRUE(reads("data.sequence_length"));
  EXPECT_TRUE(reads("data.tokenizer"));
  EXPECT_TRUE(reads("data.packing")) << "it is pad: a window a row";
  for (const char* other :
       {"data.buckets", "data.text_key", "data.long_documents", "classification.num_labels", "mlm.mask"})
    EXPECT_FALSE(reads(other)) << other;
}

}  // namespace
}  // namespace plimsoll::tasks
