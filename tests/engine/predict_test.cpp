// A classifier's answers through the engine; tests/e2e has what a user of the command meets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "telemetry/recording_sink.h"
#include "training/tiny_run.h"

namespace plimsoll::engine {
namespace {

using telemetry::RecordingSink;
using testing::HasSubstr;

class EnginePredict : public testing::Test {
 protected:
  void SetUp() override {
    folder_.write("train.jsonl",
                  "{\"input_ids\": [1, 2, 4], \"label\": 0}\n{\"input_ids\": [5, 6], \"label\": 1}\n"
                  "{\"input_ids\": [7], \"label\": 1}\n{\"input_ids\": [8, 9, 1, 2], \"label\": 0}\n");
    auto config = settings::parse_run_config(
        "task: sequence_classification\n"
        "model: {config: {model_type: llama, vocab_size: 16, pad_token_id: 3, hidden_size: 16, "
        "intermediate_size: 16, num_hidden_layers: 1, num_attention_heads: 2, num_key_value_heads: 1, "
        "max_position_embeddings: 16}}\n"
        "data: {train: " +
            folder_.path("train.jsonl") + ", sequence_length: 8, cache_dir: " + folder_.path("cache") +
            "}\ntraining: {global_batch_size: 2, max_steps: 1}\nruntime: {threads: 1}\noutput: {dir: " +
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
    r.threads = 1;
    r.memory_budget = "1GiB";
    return r;
  }
  const io::TemporaryFolder folder_;
};

TEST_F(EnginePredict, AnswersEachLineInItsOrder) {
  RecordingSink sink;
  const Status done = Engine(sink).predict(request());
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_EQ(std::ranges::count(sink.written, '\n'), 4);
  EXPECT_THAT(sink.written, testing::StartsWith("{\"label\": \"LABEL_"));

  PredictRequest one_by_one = request();
  one_by_one.batch_size = 1;
  one_by_one.output = folder_.path("lines.jsonl");
  telemetry::Sink nobody;
  ASSERT_TRUE(Engine(nobody).predict(one_by_one));
  EXPECT_EQ(std::ranges::count(io::read_all(one_by_one.output), '\n'), 4);
}

TEST_F(EnginePredict, AnErrorOfTheSinkEndsIt) {
  struct Full : telemetry::Sink {
    Status write(std::string_view) override { return Error{ErrorCode::kIo, "full", "the sink"}; }
  } full;
  const Status done = Engine(full).predict(request());
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message(), "full: the sink");
}

TEST_F(EnginePredict, ARequestToStopEndsItWithoutAFile) {
  telemetry::Sink nobody;
  PredictRequest r = request();
  r.output = folder_.path("lines.jsonl");
  const Status done = Engine(nobody, [] { return "SIGTERM"; }).predict(r);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kInterrupted);
  EXPECT_FALSE(std::filesystem::exists(r.output));
}

TEST_F(EnginePredict, TokenizingStaysWithinTheBudget) {
  telemetry::Sink nobody;
  PredictRequest r = request();
  r.memory_budget = "8MiB";
  const Status done = Engine(nobody).predict(r);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kDoesNotFit);
  EXPECT_THAT(done.error().message(), HasSubstr("tokenizing"));
  EXPECT_THAT(done.error().hint, HasSubstr("--memory-budget "));
}

TEST_F(EnginePredict, AModelThatIsNoClassifierIsRefused) {
  const training::TinyRun causal;
  telemetry::Sink nobody;
  ASSERT_TRUE(Engine(nobody).train(causal.config()));
  PredictRequest r = request();
  r.model = causal.path("out/final");
  const Status done = Engine(nobody).predict(r);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kBadData);
}

}  // namespace
}  // namespace plimsoll::engine
