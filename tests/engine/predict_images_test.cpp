// An image classifier's answers through the engine; tests/e2e has what a user of the command meets.
#include "engine/predict_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "corpora/images/image_files.h"
#include "engine/engine.h"
#include "io/json.h"
#include "telemetry/recording_sink.h"
#include "training/tiny_run.h"

namespace plimsoll::engine {
namespace {

using telemetry::RecordingSink;
using testing::HasSubstr;

class PredictImages : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"dark", "light"}) {
      std::filesystem::create_directories(folder_.path("data/" + std::string(name)));
      const auto shade = static_cast<uint8_t>(name == std::string("dark") ? 20 : 230);
      for (uint32_t i = 1; i < 4; ++i)
        folder_.write("data/" + std::string(name) + "/" + std::to_string(i) + ".png",
                      corpora::png_of(5 * i, 7, shade, shade, shade));
    }
    auto config = settings::parse_run_config(
        "model: {config: {model_type: vit, image_size: 8, patch_size: 4, hidden_size: 16, "
        "intermediate_size: 16, num_hidden_layers: 1, num_attention_heads: 2}}\n"
        "data: {train: " +
            folder_.path("data") + ", cache_dir: " + folder_.path("cache") +
            "}\ntraining: {global_batch_size: 6, max_steps: 30, learning_rate: 0.01, lr_scheduler: "
            "constant}\n"
            "runtime: {threads: 1}\noutput: {dir: " +
            folder_.path("out") + "}\n",
        "run.yaml", {});
    ASSERT_TRUE(config) << config.error().message();
    telemetry::Sink nobody;
    const Status trained = Engine(nobody).train(*config);
    ASSERT_TRUE(trained) << trained.error().message();
  }
  [[nodiscard]] PredictRequest request(const std::string& data) const {
    PredictRequest r;
    r.model = folder_.path("out/final");
    r.data = {data};
    r.threads = 1;
    r.memory_budget = "1GiB";
    return r;
  }
  /// What each line says of the image and its label, "1.png dark".
  [[nodiscard]] static std::vector<std::string> answers(const std::string& lines) {
    std::vector<std::string> all;
    for (size_t begin = 0, end; (end = lines.find('\n', begin)) != std::string::npos; begin = end + 1) {
      const auto line = io::parse_json(lines.substr(begin, end - begin));
      EXPECT_TRUE(line && line->members.size() == 4) << lines;
      if (line) all.push_back(line->find("image")->text + " " + line->find("label")->text);
    }
    return all;
  }
  const io::TemporaryFolder folder_;
};

TEST_F(PredictImages, AnswersEachImageOfAFolder) {
  EXPECT_TRUE(*classifies_images(request("")));
  for (const int64_t batch : {4, 1}) {
    RecordingSink sink;
    PredictRequest r = request(folder_.path("data"));
    r.batch_size = batch;
    const Status done = Engine(sink).predict(r);
    ASSERT_TRUE(done) << done.error().message();
    const std::string dark = folder_.path("data/dark/"), light = folder_.path("data/light/");
    EXPECT_THAT(answers(sink.written),
                testing::ElementsAre(dark + "1.png dark", dark + "2.png dark", dark + "3.png dark",
                                     light + "1.png light", light + "2.png light", light + "3.png light"));
  }
}

TEST_F(PredictImages, TakesAnImageOrATable) {
  RecordingSink one, table;
  ASSERT_TRUE(Engine(one).predict(request(folder_.path("data/light/1.png"))));
  EXPECT_EQ(answers(one.written).size(), 1U);
  folder_.write("data/t.csv", "image,label\nlight/1.png,nonsense\ndark/3.png,0\n");
  const Status done = Engine(table).predict(request(folder_.path("data/t.csv")));
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_THAT(answers(table.written), testing::ElementsAre(HasSubstr("light"), HasSubstr("dark")));
}

TEST_F(PredictImages, ABadImageIsNamedAndNothingIsWritten) {
  folder_.write("data/dark/bad.png", "words");
  telemetry::Sink nobody;
  PredictRequest r = request(folder_.path("data"));
  r.output = folder_.path("lines.jsonl");
  const Status done = Engine(nobody).predict(r);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kBadData);
  EXPECT_THAT(done.error().where, HasSubstr("dark/bad.png"));
  EXPECT_THAT(done.error().hint, HasSubstr("predict skips no image"));
  EXPECT_FALSE(std::filesystem::exists(r.output));
}

TEST_F(PredictImages, AnImageThatIsDamagedWithinIsNamed) {
  std::string damaged = corpora::png_of(5, 6, 200, 0, 0);
  for (size_t i = damaged.size() - 24; i < damaged.size() - 12; ++i) damaged[i] = 'x';
  telemetry::Sink nobody;
  const Status done = Engine(nobody).predict(request(folder_.write("data/damaged.png", damaged)));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kBadData);
  EXPECT_THAT(done.error().where, HasSubstr("damaged.png"));
  EXPECT_THAT(done.error().hint, HasSubstr("predict skips no image"));
}

TEST_F(PredictImages, StopsWhenAsked) {
  telemetry::Sink nobody;
  const Status done = Engine(nobody, [] { return "SIGTERM"; }).predict(request(folder_.path("data")));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kInterrupted);
}

}  // namespace
}  // namespace plimsoll::engine
