// Tokens added to a model of a few numbers; tests/interop/add_tokens_compare.py has real families beside
// transformers.
#include "model_tools/add_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "io/model_config.h"
#include "io/model_weights.h"
#include "io/safetensors_writer.h"
#include "io/temporary_folder.h"
#include "models/model.h"
#include "tokenizers/tokenizer.h"

namespace plimsoll::model_tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kTokenizer = R"({"version": "1.0", "added_tokens": [{"id": 3, "content": "<s>",
  "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
  "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})";

class AddTokens : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_.path("model"));
    const std::string config =
        R"({"model_type": "llama", "vocab_size": 4, "hidden_size": 4, "intermediate_size": 8,
            "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1,
            "max_position_embeddings": 8, "tie_word_embeddings": false})";
    folder_.write("model/config.json", config);
    folder_.write("model/tokenizer.json", kTokenizer);
    const auto model = models::make_model(*io::parse_config_json(config, "config.json"));
    ASSERT_TRUE(model);
    std::vector<io::SafetensorsEntry> entries;
    std::vector<std::vector<float>> values;
    for (const models::Parameter& p : (*model)->parameters())
      for (const models::ParameterView& view : p.views) {
        entries.push_back({view.name, "F32", {view.shape.dims().begin(), view.shape.dims().end()}});
        values.emplace_back();
        for (int64_t i = 0; i < view.shape.num_elements(); ++i)
          values.back().push_back(static_cast<float>(i));
      }
    auto writer = io::SafetensorsWriter::create(folder_.path("model/model.safetensors"), entries);
    ASSERT_TRUE(writer);
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_TRUE(writer->write(i, std::as_bytes(std::span(values[i]))));
    ASSERT_TRUE(writer->finish());
  }
  [[nodiscard]] AddTokensRequest request() const {
    return {.model = folder_.path("model"), .output = folder_.path("out")};
  }
  [[nodiscard]] std::vector<float> row(const std::string& name, int64_t number) const {
    std::vector<float> values(4);
    const auto weights = io::ModelWeights::open(folder_.path("out"));
    EXPECT_TRUE(weights);
    const auto ref = weights->find(name);
    EXPECT_TRUE(ref);
    EXPECT_TRUE(ref->file->read(*ref->tensor, number * 16, std::as_writable_bytes(std::span(values))));
    return values;
  }
  [[nodiscard]] std::string refusal(const AddTokensRequest& request) const {
    const auto done = add_tokens(request);
    if (done) return "done";
    EXPECT_FALSE(std::filesystem::exists(request.output));
    return done.error().message();
  }
  io::TemporaryFolder folder_;
};

TEST_F(AddTokens, NewRowsAreTheMeanOfTheOldOnes) {
  AddTokensRequest r = request();
  r.tokens = {"ship"};
  r.special_tokens = {"<|tool|>"};
  r.multiple_of = 8;
  const auto report = add_tokens(r);
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->num_tokens, 6);
  EXPECT_EQ(report->rows, 8);
  for (const char* name : {"model.embed_tokens.weight", "lm_head.weight"}) {
    EXPECT_THAT(row(name, 3), ElementsAre(12, 13, 14, 15));
    for (const int64_t added : {4, 7}) EXPECT_THAT(row(name, added), ElementsAre(6, 7, 8, 9)) << name;
  }
  EXPECT_THAT(row("model.layers.0.self_attn.q_proj.weight", 3), ElementsAre(12, 13, 14, 15));
  const auto config = io::read_config_json(folder_.path("out/config.json"));
  ASSERT_TRUE(config);
  EXPECT_EQ(*config->integer("vocab_size", {1}), 8);
  const auto tokenizer = tokenizers::Tokenizer::open(folder_.path("out"));
  ASSERT_TRUE(tokenizer);
  std::vector<int32_t> ids;
  ASSERT_TRUE((*tokenizer)->encode("abship<|tool|>", false, ids));
  EXPECT_THAT(ids, ElementsAre(2, 4, 5));
  EXPECT_EQ((*tokenizer)->decode(ids, true), "ab ship") << "the special one is left out";
}

TEST_F(AddTokens, AnotherTokenizerBringsItsFiles) {
  std::filesystem::create_directories(folder_.path("other"));
  folder_.write("other/tokenizer.json",
                R"({"version": "1.0", "model": {"type": "BPE", "vocab": {"c": 0, "d": 1}, "merges": []}})");
  AddTokensRequest r = request();
  r.tokenizer = folder_.path("other");
  const auto report = add_tokens(r);
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->rows, 4) << "there are rows enough";
  EXPECT_EQ(*io::read_small_file(folder_.path("out/tokenizer.json"), 1 << 20),
            *io::read_small_file(folder_.path("other/tokenizer.json"), 1 << 20));
}

TEST_F(AddTokens, RefusesWhatIsNoNewToken) {
  AddTokensRequest r = request();
  EXPECT_THAT(refusal(r), HasSubstr("no token is named"));
  r.tokens = {"ab"};
  EXPECT_THAT(refusal(r), HasSubstr("'ab' is token 2 already"));
  r.tokens = {"x", "x"};
  EXPECT_THAT(refusal(r), HasSubstr("'x' is named twice"));
  r.tokens = {""};
  EXPECT_THAT(refusal(r), HasSubstr("empty"));
  r.tokens = {"x"};
  r.multiple_of = 0;
  EXPECT_THAT(refusal(r), HasSubstr("--multiple-of"));
  r.multiple_of = 1;
  std::filesystem::remove(folder_.path("model/tokenizer.json"));
  EXPECT_THAT(refusal(r), HasSubstr("no tokenizer.json"));
}

}  // namespace
}  // namespace plimsoll::model_tools
