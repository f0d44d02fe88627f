// Answers to questions through the engine; tests/e2e has what a user of the command meets.
#include "engine/predict_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/engine.h"
#include "io/json.h"
#include "telemetry/recording_sink.h"
#include "training/tiny_run.h"

namespace plimsoll::engine {
namespace {

using telemetry::RecordingSink;
using testing::HasSubstr;

/// Letters and the space are tokens; as BERT's, <s> A </s> B </s>.
std::string letters_of_pairs() {
  std::string vocab = R"("?": 0, " ": 1, "<s>": 2, "</s>": 3)";
  for (int i = 0; i < 26; ++i)
    vocab += std::string(", \"") + static_cast<char>('a' + i) + "\": " + std::to_string(4 + i);
  const auto added = [](const char* name, int id) {
    return "{\"id\": " + std::to_string(id) + ", \"content\": \"" + name +
           R"(", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true})";
  };
  const std::string first =
      R"({"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
      {"SpecialToken": {"id": "</s>", "type_id": 0}})";
  return R"({"version": "1.0", "model": {"type": "BPE", "vocab": {)" + vocab +
         R"(}, "merges": []}, "added_tokens": [)" + added("<s>", 2) + ", " + added("</s>", 3) +
         R"(], "post_processor": {"type": "TemplateProcessing", "single": [)" + first + R"(], "pair": [)" +
         first +
         R"(, {"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "</s>", "type_id": 1}}],
      "special_tokens": {"<s>": {"id": "<s>", "ids": [2], "tokens": ["<s>"]},
                         "</s>": {"id": "</s>", "ids": [3], "tokens": ["</s>"]}}}})";
}

class EngineAnswers : public testing::Test {
 protected:
  void SetUp() override {
    folder_.write("tokenizer.json", letters_of_pairs());
    folder_.write(
        "train.jsonl",
        R"({"id": "a", "question": "q", "context": "abcdefghijklmnop", "answers": {"text": ["cd"], "answer_start": [2]}}
{"id": "b", "question": "r", "context": "xyz", "answers": {"text": ["z"], "answer_start": [2]}}
{"id": "c", "question": "s", "context": "uvw", "answers": {"text": [], "answer_start": []}}
)");
    auto config = settings::parse_run_config(
        "task: question_answering\n"
        "model: {config: {model_type: bert, vocab_size: 30, hidden_size: 16, intermediate_size: 16, "
        "num_hidden_layers: 1, num_attention_heads: 2, max_position_embeddings: 16, type_vocab_size: 2}}\n"
        "data: {train: " +
            folder_.path("train.jsonl") + ", tokenizer: " + folder_.path("tokenizer.json") +
            ", sequence_length: 10, cache_dir: " + folder_.path("cache") +
            "}\nqa: {doc_stride: 2}\ntraining: {global_batch_size: 2, max_steps: 1}\nruntime: {threads: 1}\n"
            "output: {dir: " +
            folder_.path("out") + "}\n",
        "run.yaml", {});
    ASSERT_TRUE(config) << config.error().message();
    telemetry::Sink nobody;
    const Status trained = Engine(nobody).train(*config);
    ASSERT_TRUE(trained) << trained.error().message();
  }
  [[nodiscard]] PredictRequest request() const {
    PredictRequest r;
    r.model = folder_.path("out/final");
    r.data = {folder_.path("train.jsonl")};
    r.max_length = 10;
    r.doc_stride = 2;
    r.threads = 1;
    r.memory_budget = "1GiB";
    return r;
  }
  static std::vector<io::Tree> lines(const std::string& text) {
    std::vector<io::Tree> all;
    for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
      all.push_back(*io::parse_json(text.substr(begin, end - begin)));
    return all;
  }
  const io::TemporaryFolder folder_;
};

TEST_F(EngineAnswers, KnowsAModelByItsHead) {
  EXPECT_TRUE(*answers_questions(request()));
  const training::TinyRun causal;
  telemetry::Sink nobody;
  ASSERT_TRUE(Engine(nobody).train(causal.config()));
  PredictRequest r = request();
  r.model = causal.path("out/final");
  EXPECT_FALSE(*answers_questions(r));
  r.model = folder_.path("absent");
  EXPECT_FALSE(answers_questions(r));
}

TEST_F(EngineAnswers, ALineForEachQuestionInItsOrder) {
  RecordingSink sink;
  const Status done = Engine(sink).predict(request());
  ASSERT_TRUE(done) << done.error().message();
  const std::vector<io::Tree> found = lines(sink.written);
  ASSERT_EQ(found.size(), 3U);
  const std::vector<std::string> contexts = {"abcdefghijklmnop", "xyz", "uvw"};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(found[i].find("id")->text, std::string(1, static_cast<char>('a' + i)));
    const auto begin = std::stoul(found[i].find("begin")->text), end = std::stoul(found[i].find("end")->text);
    EXPECT_EQ(found[i].find("answer")->text, contexts[i].substr(begin, end - begin));
    EXPECT_EQ(found[i].find("n_best"), nullptr);
    EXPECT_EQ(found[i].find("null_odds"), nullptr);
  }
  PredictRequest one_by_one = request();
  one_by_one.batch_size = 1;
  one_by_one.output = folder_.path("lines.jsonl");
  telemetry::Sink nobody;
  ASSERT_TRUE(Engine(nobody).predict(one_by_one));
  EXPECT_EQ(io::read_all(one_by_one.output), sink.written) << "windows of a question in several batches";
}

TEST_F(EngineAnswers, TheRulesOfTheRequestHold) {
  PredictRequest r = request();
  r.answers = {.n_best = 4, .max_answer_tokens = 1, .null_threshold = 1e9};
  r.alternatives = 7;
  RecordingSink sink;
  ASSERT_TRUE(Engine(sink).predict(r));
  for (const io::Tree& line : lines(sink.written)) {
    EXPECT_EQ(line.find("answer")->text.size(), 1U) << "a letter is a token";
    EXPECT_NE(line.find("null_odds"), nullptr);
    const auto& best = line.find("n_best")->items;
    EXPECT_LE(best.size(), 5U) << "of four, and no answer, which is kept";
    double sum = 0;
    bool has_none = false;
    for (const io::Tree& each : best) {
      sum += std::stod(each.find("score")->text);
      has_none = has_none || each.find("answer")->text.empty();
    }
    EXPECT_NEAR(sum, 1, 1e-6);
    EXPECT_TRUE(has_none);
  }
}

TEST_F(EngineAnswers, AnErrorOfTheSinkEndsIt) {
  struct Full : telemetry::Sink {
    Status write(std::string_view) override { return Error{ErrorCode::kIo, "full", "the sink"}; }
  } full;
  const Status done = Engine(full).predict(request());
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message(), "full: the sink");
}

TEST_F(EngineAnswers, ARequestToStopEndsItWithoutAFile) {
  telemetry::Sink nobody;
  PredictRequest r = request();
  r.output = folder_.path("lines.jsonl");
  const Status done = Engine(nobody, [] { return "SIGTERM"; }).predict(r);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kInterrupted);
  EXPECT_FALSE(std::filesystem::exists(r.output));
}

TEST_F(EngineAnswers, AFileThatIsWrongLeavesNoAnswers) {
  telemetry::Sink nobody;
  PredictRequest r = request();
  r.output = folder_.path("lines.jsonl");
  r.data = {folder_.path("train.jsonl"), folder_.write("bad.jsonl", "{\"question\": \"q\"}\n")};
  const Status done = Engine(nobody).predict(r);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kBadData);
  EXPECT_THAT(done.error().message(), HasSubstr("bad.jsonl: line 1"));
  EXPECT_EQ(done.error().hint, "correct it: every line needs an answer, none is skipped");
  EXPECT_FALSE(std::filesystem::exists(r.output));
}

TEST_F(EngineAnswers, WhatTheWindowsDoNotHoldIsSaidInWordsOfTheRequest) {
  telemetry::Sink nobody;
  PredictRequest r = request();
  r.doc_stride = 9;
  const Status done = Engine(nobody).predict(r);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().hint,
            "allow more tokens (--max-length), or fewer that windows share (--doc-stride)");
}

TEST_F(EngineAnswers, TokenizingStaysWithinTheBudget) {
  telemetry::Sink nobody;
  PredictRequest r = request();
  r.memory_budget = "8MiB";
  const Status done = Engine(nobody).predict(r);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kDoesNotFit);
  EXPECT_THAT(done.error().hint, HasSubstr("--memory-budget "));
}

}  // namespace
}  // namespace plimsoll::engine
