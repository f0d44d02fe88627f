// A classifier's data made ready: what a run has of it, found again, made anew where something has changed.
#include "preprocessing/labelled_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/file.h"
#include "io/temporary_folder.h"
#include "preprocessing/data_cache.h"
#include "preprocessing/run_data_text.h"
#include "preprocessing/run_task.h"

namespace plimsoll::preprocessing {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class LabelledDataTest : public testing::Test {
 protected:
  [[nodiscard]] settings::RunConfig config(const std::string& more = "") const {
    auto parsed = settings::parse_run_config(
        "task: sequence_classification\nmodel: {config: {model_type: gpt2, vocab_size: 50, n_embd: 12, "
        "n_head: 2, "
        "n_layer: 1, n_positions: 16, pad_token_id: 7}}\noutput: {dir: " +
            folder_.path("out") + "}\n",
        "run.yaml",
        std::vector<std::string>{"data.train=" + folder_.path("train.jsonl"),
                                 "data.eval=" + folder_.path("eval.jsonl"), "data.sequence_length=8"});
    EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message());
    if (more.empty()) return std::move(*parsed);
    parsed->data.eval_fraction = 0.5;
    parsed->data.eval.clear();
    return std::move(*parsed);
  }
  [[nodiscard]] static io::ConfigJson model(const settings::RunConfig& config) {
    return *settings::load_model_config(config.model);
  }
  [[nodiscard]] Result<RunData> prepare(const settings::RunConfig& run, bool train = true) const {
    return prepare_data(run, {.train = train, .vocab_size = 50});
  }
  void SetUp() override {
    folder_.write("train.jsonl",
                  "{\"input_ids\": [1, 2, 7], \"label\": \"b\"}\n{\"input_ids\": [3], \"label\": \"a\"}\n"
                  "{\"input_ids\": [4, 5, 6], \"label\": \"b\"}\n");
    folder_.write("eval.jsonl", "{\"input_ids\": [9], \"label\": \"a\"}\n");
  }
  const io::TemporaryFolder folder_;
};

TEST_F(LabelledDataTest, TakesTheFirstExamplesAlone) {
  settings::RunConfig run = config();
  run.data.max_train_samples = 2;
  run.data.max_eval_samples = 5;
  const auto data = prepare(run);
  ASSERT_TRUE(data) << data.error().message();
  EXPECT_EQ(datasets::Shard::open(data->train[0].paths[0])->info().num_documents, 2);
  EXPECT_EQ(data->num_eval, 1);
  EXPECT_EQ(find_labels(run, model(run), true)->labels, *data->labels);
  run.data.max_train_samples = {};
  EXPECT_NE(prepare(run)->train[0].paths, data->train[0].paths) << "another name in the cache";
}

TEST_F(LabelledDataTest, HasShardsLabelsAndCounts) {
  const settings::RunConfig run = config();
  EXPECT_FALSE(find_labelled(run, model(run), true)) << "nothing is there yet";
  const auto data = prepare(run);
  ASSERT_TRUE(data) << data.error().message();
  EXPECT_EQ(*data->labels, (io::Labels{io::ProblemType::kSingleLabel, {"a", "b"}}));
  EXPECT_EQ(data->num_eval, 1);
  ASSERT_EQ(data->train.size(), 1U);
  const auto shard = datasets::Shard::open(data->train[0].paths[0]);
  ASSERT_TRUE(shard);
  EXPECT_EQ(shard->info().num_documents, 3);
  EXPECT_EQ(shard->info().num_tokens, 2 + 1 + 3) << "padding is not kept";
  const auto found = find_labelled(run, model(run), true);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->train[0].paths, data->train[0].paths);
  EXPECT_EQ(found->labels, data->labels);
}

/// What is not cut before it is stored has the same name at every length.
TEST_F(LabelledDataTest, ADecodersShardsServeEveryLength) {
  settings::RunConfig run = config();
  const auto data = prepare(run);
  ASSERT_TRUE(data);
  EXPECT_FALSE(std::filesystem::exists(corpora::types_beside(data->train[0].paths[0])));
  run.data.sequence_length = 4;
  EXPECT_EQ(prepare(run)->train[0].paths, data->train[0].paths);
}

TEST_F(LabelledDataTest, TokenTypesStandBesideAnEncodersShards) {
  const auto typed = settings::parse_run_config(
      "task: sequence_classification\nmodel: {config: {model_type: bert, vocab_size: 50, hidden_size: 12, "
      "num_attention_heads: 2, num_hidden_layers: 1, intermediate_size: 12, max_position_embeddings: 16, "
      "type_vocab_size: 2, pad_token_id: 7}}\n",
      "run.yaml",
      std::vector<std::string>{"data.train=" + folder_.path("train.jsonl"),
                               "output.dir=" + folder_.path("out"), "data.sequence_length=8"});
  ASSERT_TRUE(typed) << typed.error().message();
  folder_.write("train.jsonl",
                "{\"input_ids\": [1, 2], \"token_type_ids\": [0, 1], \"label\": 0}\n"
                "{\"input_ids\": [3], \"label\": 1}\n");
  const auto data = prepare(*typed);
  ASSERT_TRUE(data) << data.error().message();
  const std::string types = corpora::types_beside(data->train[0].paths[0]), intact = io::read_all(types);
  for (const CacheEntry& entry : *list_data_cache(io::folder_of(types)))
    EXPECT_TRUE(entry.in_use) << entry.name;
  for (const bool removed : {false, true}) {
    std::ofstream(types, std::ios::binary) << intact.substr(0, intact.size() - 1);
    if (removed) std::filesystem::remove(types);
    ASSERT_TRUE(prepare(*typed));
    EXPECT_EQ(io::read_all(types), intact);
  }
}

/// Questions in windows: a BERT whose tokenizer has a token for each letter.
class QuestionDataTest : public LabelledDataTest {
 protected:
  void SetUp() override {
    folder_.write("tokenizer.json", letters());
    std::string lines;
    for (int i = 0; i < 30; ++i) lines += line(i, 3 + i % 20);
    folder_.write("train.jsonl", lines);
    folder_.write("eval.jsonl", line(3, 12));
  }
  static std::string line(int question, int letters) {
    std::string context;
    for (int i = 0; i < letters; ++i) context += static_cast<char>('a' + (i * 7 + question) % 26);
    return "{\"question\": \"" + std::string(1, static_cast<char>('a' + question % 26)) +
           (question < 26 ? "" : "z") + "\", \"context\": \"" + context + R"(", "answers": {"text": [")" +
           context.substr(0, 2) + "\"], \"answer_start\": [0]}}\n";
  }
  static std::string letters() {
    std::string vocab = R"("?": 0, " ": 1, "<s>": 2, "</s>": 3)";
    for (int i = 0; i < 26; ++i)
      vocab += std::string(", \"") + static_cast<char>('a' + i) + "\": " + std::to_string(4 + i);
    const auto added = [](const char* name, int id) {
      return "{\"id\": " + std::to_string(id) + ", \"content\": \"" + name +
             R"(", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true})";
    };
    const auto piece = [](const char* kind, const char* id, int type) {
      return std::string("{\"") + kind + "\": {\"id\": \"" + id + "\", \"type_id\": " + std::to_string(type) +
             "}}";
    };
    const std::string first = piece("SpecialToken", "<s>", 0) + ", " + piece("Sequence", "A", 0) + ", " +
                              piece("SpecialToken", "</s>", 0);
    return R"({"version": "1.0", "model": {"type": "BPE", "vocab": {)" + vocab +
           R"(}, "merges": []}, "added_tokens": [)" + added("<s>", 2) + ", " + added("</s>", 3) +
           R"(], "post_processor": {"type": "TemplateProcessing", "single": [)" + first + R"(], "pair": [)" +
           first + ", " + piece("Sequence", "B", 1) + ", " + piece("SpecialToken", "</s>", 1) +
           R"(], "special_tokens": {"<s>": {"id": "<s>", "ids": [2], "tokens": ["<s>"]},
            "</s>": {"id": "</s>", "ids": [3], "tokens": ["</s>"]}}}})";
  }
  [[nodiscard]] settings::RunConfig asking(std::vector<std::string> more = {}) const {
    more.insert(more.begin(),
                {"data.train=" + folder_.path("train.jsonl"), "data.eval=" + folder_.path("eval.jsonl"),
                 "data.tokenizer=" + folder_.path("tokenizer.json"), "output.dir=" + folder_.path("out"),
                 "data.sequence_length=10", "qa.doc_stride=2"});
    auto parsed = settings::parse_run_config(
        "task: question_answering\nmodel: {config: {model_type: bert, vocab_size: 50, hidden_size: 12, "
        "num_attention_heads: 2, num_hidden_layers: 1, intermediate_size: 12, max_position_embeddings: 16, "
        "type_vocab_size: 2}}\n",
        "run.yaml", more);
    EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message());
    return std::move(*parsed);
  }
  static int64_t windows(const datasets::DataFiles& files) {
    return datasets::Shard::open(files.paths[0])->info().num_documents;
  }
};

TEST_F(QuestionDataTest, HasWindowsAndKnowsTheirLabels) {
  const settings::RunConfig run = asking();
  EXPECT_FALSE(find_labelled(run, model(run), true)) << "nothing is there yet";
  const auto data = prepare(run);
  ASSERT_TRUE(data) << data.error().message();
  EXPECT_EQ(*data->labels, span_labels());
  // Three specials and a letter leave 6 of 10, two of them shared: 12 letters are 6, then 4, then 2 more.
  EXPECT_EQ(data->num_eval, 3);
  EXPECT_EQ(data->buckets.lengths, std::vector<int64_t>{10});
  EXPECT_GT(windows(data->train[0]), 30);
  const auto found = find_labelled(run, model(run), true);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->train[0].paths, data->train[0].paths);
  EXPECT_EQ(found->num_eval, 3);
  for (const CacheEntry& entry : *list_data_cache(io::folder_of(data->train[0].paths[0])))
    EXPECT_TRUE(entry.in_use) << entry.name;
  const auto alone = prepare(run, /*train=*/false);
  ASSERT_TRUE(alone) << alone.error().message();
  EXPECT_TRUE(alone->train.empty());
  EXPECT_EQ(*alone->labels, span_labels());
}

TEST_F(QuestionDataTest, WindowsOfOtherSizesAreOtherFiles) {
  const auto paths = [&](const std::vector<std::string>& more) {
    const auto data = prepare(asking(more));
    EXPECT_TRUE(data) << (data ? "" : data.error().message());
    return data->train[0].paths;
  };
  const auto usual = paths({});
  EXPECT_EQ(paths({}), usual);
  EXPECT_NE(paths({"qa.doc_stride=3"}), usual);
  EXPECT_NE(paths({"data.sequence_length=12"}), usual);
}

TEST_F(QuestionDataTest, SamplesAreQuestionsAndStayWhole) {
  const auto all = prepare(asking());
  const auto some = prepare(asking({"data.max_train_samples=20", "data.max_eval_samples=1"}));
  ASSERT_TRUE(all && some);
  // Contexts of 3 to 22 letters; of n > 6 letters there are 1 + ceil((n - 6) / 4) windows.
  int64_t expected = 0;
  for (int64_t n = 3; n < 23; ++n) expected += n <= 6 ? 1 : 1 + (n - 6 + 3) / 4;
  EXPECT_EQ(windows(some->train[0]), expected);
  EXPECT_LT(expected, windows(all->train[0]));
  EXPECT_EQ(some->num_eval, 3) << "one question";
}

TEST_F(QuestionDataTest, HoldsQuestionsOut) {
  settings::RunConfig run = asking();
  run.data.eval_fraction = 0.4;
  run.data.eval.clear();
  const auto data = prepare(run), all = prepare(asking());
  ASSERT_TRUE(data && all) << (data ? "" : data.error().message());
  EXPECT_EQ(windows(data->train[0]) + data->num_eval, windows(all->train[0]));
  EXPECT_GT(data->num_eval, 5);
  EXPECT_GT(windows(data->train[0]), 5);
}

TEST_F(QuestionDataTest, WhatIsNoQuestionIsNamed) {
  const auto text = prepare(asking({"data.train=" + folder_.write("a.txt", "text")}));
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(text.error().message(), HasSubstr("data.train holds no questions: "));
  EXPECT_THAT(text.error().hint, HasSubstr("\"question\""));
  const auto labels =
      prepare(asking({"data.train=" + folder_.write("a.jsonl", "{\"text\": \"a\", \"label\": 1}")}));
  ASSERT_FALSE(labels);
  EXPECT_EQ(labels.error().code, ErrorCode::kBadData);
  EXPECT_THAT(labels.error().message(), HasSubstr("the question has no \"question\": "));
}

TEST_F(LabelledDataTest, IsMadeAnewWhenTheFilesChange) {
  const settings::RunConfig run = config();
  const auto before = prepare(run);
  ASSERT_TRUE(before);
  folder_.write("train.jsonl",
                "{\"input_ids\": [1], \"label\": \"x\"}\n{\"input_ids\": [3], \"label\": \"a\"}\n");
  const auto after = prepare(run);
  ASSERT_TRUE(after);
  EXPECT_NE(before->train[0].paths, after->train[0].paths);
  EXPECT_THAT(after->labels->names, ElementsAre("a", "x"));
}

TEST_F(LabelledDataTest, ADamagedFileIsMadeAgain) {
  const settings::RunConfig run = config();
  const auto data = prepare(run);
  ASSERT_TRUE(data);
  const std::string labels = corpora::labels_beside(data->train[0].paths[0]), intact = io::read_all(labels);
  std::ofstream(labels, std::ios::binary) << intact.substr(0, 20);
  ASSERT_TRUE(prepare(run));
  EXPECT_EQ(io::read_all(labels), intact);
}

TEST_F(LabelledDataTest, AHalfOfAPairIsMadeAgain) {
  const settings::RunConfig run = config();
  const auto data = prepare(run);
  ASSERT_TRUE(data);
  const std::string shard = data->train[0].paths[0], labels = corpora::labels_beside(shard);
  const std::string shard_bytes = io::read_all(shard), labels_bytes = io::read_all(labels);
  for (const std::string& lost : {shard, labels}) {
    std::filesystem::remove(lost);
    EXPECT_FALSE(find_labelled(run, model(run), true)) << "a plan does not take it for what is there";
    const auto again = prepare(run);
    ASSERT_TRUE(again) << again.error().message();
    EXPECT_EQ(again->labels, data->labels);
    EXPECT_TRUE(io::read_all(shard) == shard_bytes && io::read_all(labels) == labels_bytes);
  }
}

TEST_F(LabelledDataTest, TheLabelsOfAnotherShardAreMadeAgain) {
  const settings::RunConfig run = config();
  const auto data = prepare(run);
  ASSERT_TRUE(data);
  const std::string labels = corpora::labels_beside(data->train[0].paths[0]), intact = io::read_all(labels);
  std::filesystem::copy_file(corpora::labels_beside(data->eval[0].paths[0]), labels,
                             std::filesystem::copy_options::overwrite_existing);
  ASSERT_TRUE(prepare(run));
  EXPECT_EQ(io::read_all(labels), intact);
}

TEST_F(LabelledDataTest, ARunUsesShardsAndLabels) {
  const auto data = prepare(config());
  ASSERT_TRUE(data);
  const auto listed = list_data_cache(io::folder_of(data->train[0].paths[0]));
  ASSERT_TRUE(listed);
  EXPECT_EQ(listed->size(), 4U) << "of training and evaluation, a shard and labels each";
  for (const CacheEntry& entry : *listed) EXPECT_TRUE(entry.in_use) << entry.name;
}

TEST_F(LabelledDataTest, EvaluationAloneTakesItsOwnLabels) {
  folder_.write("eval.jsonl", "{\"input_ids\": [9], \"label\": 0.5}\n{\"input_ids\": [9], \"label\": 1}\n");
  const auto data = prepare(config(), /*train=*/false);
  ASSERT_TRUE(data) << data.error().message();
  EXPECT_TRUE(data->train.empty());
  EXPECT_EQ(data->labels->problem, io::ProblemType::kRegression);
  EXPECT_EQ(data->num_eval, 2);
  const auto both = prepare(config());
  ASSERT_FALSE(both);
  EXPECT_THAT(both.error().message(), HasSubstr("label is 0.5, expected a class"));
}

TEST_F(LabelledDataTest, HoldsExamplesOut) {
  std::string lines;
  for (int i = 0; i < 40; ++i)
    lines += "{\"input_ids\": [" + std::to_string(i) + ", 2], \"label\": " + std::to_string(i % 2) + "}\n";
  folder_.write("train.jsonl", lines);
  const settings::RunConfig run = config("held out");
  const auto data = prepare(run);
  ASSERT_TRUE(data) << data.error().message();
  const int64_t trained = datasets::Shard::open(data->train[0].paths[0])->info().num_documents;
  EXPECT_EQ(trained + data->num_eval, 40);
  EXPECT_GT(data->num_eval, 5);
  EXPECT_LT(data->num_eval, 35);
}

TEST_F(LabelledDataTest, LabelsAreKnownBeforeAnythingIsTokenized) {
  const settings::RunConfig run = config();
  const auto early = find_labels(run, model(run), true);
  ASSERT_TRUE(early);
  EXPECT_TRUE(early->certain);
  EXPECT_THAT(early->labels.names, ElementsAre("a", "b"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("out")));
  folder_.write("train.jsonl", "no JSON");
  EXPECT_FALSE(find_labels(run, model(run), true)->certain) << "what is wrong is told when it is prepared";
}

TEST(RunTask, FollowsSettingsAndArchitecture) {
  const auto kind = [](const std::string& task, const std::string& architecture) {
    settings::RunConfig run;
    run.task = task;
    const auto found = task_of(
        run, *io::parse_config_json("{\"architectures\": [\"" + architecture + "\"]}", "config.json"));
    return found ? std::string((*found)->name)
                 : "error " + std::to_string(static_cast<int>(found.error().code));
  };
  EXPECT_EQ(kind("auto", "LlamaForCausalLM"), "causal_lm");
  EXPECT_EQ(kind("auto", "LlamaForSequenceClassification"), "sequence_classification");
  EXPECT_EQ(kind("sequence_classification", "LlamaForCausalLM"), "sequence_classification");
  EXPECT_EQ(kind("causal_lm", "LlamaForSequenceClassification"),
            "error " + std::to_string(static_cast<int>(ErrorCode::kInvalidArgument)));
}

TEST(RunDataText, ReadsBackWhatItHolds) {
  const RunData data{.train = {{{"a:b\n", ""}, 2.5}},
                     .eval = {{{"c"}, 1}},
                     .buckets = {{8, 16}, 3, 20, 40},
                     .labels = io::Labels{io::ProblemType::kMultiLabel, {"x", "y:1"}},
                     .num_eval = 7};
  const RunData back = *run_data_of(run_data_text(data));
  EXPECT_EQ(back.train[0].paths, data.train[0].paths);
  EXPECT_EQ(back.train[0].weight, 2.5);
  EXPECT_EQ(back.buckets.lengths, data.buckets.lengths);
  EXPECT_EQ(back.buckets.positions, 40);
  EXPECT_EQ(back.labels, data.labels);
  EXPECT_EQ(back.num_eval, 7);
  EXPECT_FALSE(run_data_of(run_data_text({}))->labels);
}

}  // namespace
}  // namespace plimsoll::preprocessing
