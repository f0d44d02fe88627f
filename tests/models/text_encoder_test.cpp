// What holds for every family of encoders, by its sample: its head reads the first token, every token sees
// all others of its sequence and no padding, and scores are what the interpreter computes.
#include "models/text_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "changed_config.h"
#include "encoder_forward.h"
#include "models/classifier.h"
#include "models/families.h"

namespace plimsoll::models {
namespace {

using testing::HasSubstr;

class EncoderTest : public testing::TestWithParam<const Family*> {
 protected:
  [[nodiscard]] static std::unique_ptr<LanguageModel> sample(const char* changes = "{}") {
    return model_of(io::to_json(changed(GetParam()->sample, changes).fields()));
  }
};

TEST_P(EncoderTest, ItsSampleIsAModelOfIt) {
  EXPECT_TRUE(is_encoder_family(*GetParam()));
  const auto model = sample();
  EXPECT_TRUE(model->is_bidirectional());
  EXPECT_TRUE(model->unknown_fields().empty());
  EXPECT_EQ(model->vocab_size(), 211);
  EXPECT_EQ(model->num_labels(), 5);
  expect_views_cover(*model);
  for (const Parameter& p : model->parameters()) {
    EXPECT_EQ(p.kind == ParameterKind::kVector, p.shape.rank() == 1) << p.name;
    EXPECT_NE(model->is_of_head(p.name), p.name.starts_with(model->base_prefix())) << p.name;
    EXPECT_FALSE(model->ignores_tensor(p.name)) << p.name;
  }
}

TEST_P(EncoderTest, ItsSizesHaveTheNamesOfItsConfig) {
  const io::ConfigJson config = *io::parse_config_json(GetParam()->sample, "config.json");
  const SizeFields& f = GetParam()->fields;
  for (const FieldNames& names : {f.layers, f.hidden, f.heads, f.inner, f.positions, f.vocabulary})
    EXPECT_TRUE(std::ranges::any_of(names, [&](auto name) { return config.fields().find(name) != nullptr; }))
        << names[0];
}

TEST_P(EncoderTest, ComputesWhatTheInterpreterComputes) {
  const auto model = sample();
  const PaddedBatch batch = padded_batch(*model, {37, 1, 20}, 37);
  const std::vector<double> expected = interpret_encoder(*model, batch);
  ASSERT_EQ(expected.size(), 15U);
  for (const bool with_passes : {false, true}) {
    SCOPED_TRACE(with_passes ? "with passes" : "without passes");
    expect_close(compute_encoder(*model, batch, {}, with_passes), expected);
  }
}

TEST_P(EncoderTest, PaddingChangesNoBit) {
  const auto model = sample();
  const std::vector<int64_t> lengths = {33, 1, 20};
  const std::vector<float> padded = compute_encoder(*model, padded_batch(*model, lengths, 50));
  EXPECT_EQ(compute_encoder(*model, padded_batch(*model, lengths, 33)), padded);
  for (size_t s = 0; s < lengths.size(); ++s) {
    PaddedBatch alone = padded_batch(*model, lengths, lengths[s]);
    const auto keep = [&](std::vector<int32_t>& rows) {
      rows = {rows.begin() + static_cast<int64_t>(s) * lengths[s],
              rows.begin() + static_cast<int64_t>(s + 1) * lengths[s]};
    };
    keep(alone.tokens);
    keep(alone.token_types);
    const std::vector<float> scores = compute_encoder(*model, alone, {.documents = false});
    const auto from = padded.begin() + static_cast<int64_t>(s) * 5;
    EXPECT_EQ(scores, std::vector<float>(from, from + 5)) << s;
  }
}

TEST_P(EncoderTest, TheFirstTokenSeesTheLast) {
  const auto model = sample();
  PaddedBatch batch = padded_batch(*model, {20, 20}, 24);
  const std::vector<float> before = compute_encoder(*model, batch);
  batch.tokens[19] = batch.tokens[19] == 5 ? 6 : 5;  // the last of the first sequence
  std::vector<float> after = compute_encoder(*model, batch);
  for (size_t i = 0; i < 5; ++i) EXPECT_NE(after[i], before[i]);
  for (size_t i = 5; i < 10; ++i) EXPECT_EQ(after[i], before[i]);
  batch.tokens[20] = batch.tokens[20] == 5 ? 6 : 5;  // padding
  EXPECT_EQ(compute_encoder(*model, batch), after);
}

TEST_P(EncoderTest, TokenTypesThatAreAbsentAreZero) {
  const auto model = sample();
  PaddedBatch batch = padded_batch(*model, {20, 11}, 20);
  const std::vector<float> typed = compute_encoder(*model, batch);
  std::ranges::fill(batch.token_types, 0);
  const std::vector<float> zeros = compute_encoder(*model, batch);
  EXPECT_EQ(compute_encoder(*model, batch, {.types = false}), zeros);
  EXPECT_EQ(typed != zeros, model->num_token_types() > 1);
}

TEST_P(EncoderTest, HasNoHeadWithoutLabels) {
  const auto bare = sample(R"({"architectures": null})");
  EXPECT_EQ(bare->num_labels(), 0);
  EXPECT_TRUE(bare->ignores_tensor("classifier.weight"));
  for (const Parameter& p : bare->parameters())
    EXPECT_TRUE(p.name.starts_with(bare->base_prefix())) << p.name;
  const auto classifier = as_classifier(changed(GetParam()->sample, R"({"architectures": null})"),
                                        {io::ProblemType::kSingleLabel, {"a", "b"}});
  ASSERT_TRUE(classifier);
  EXPECT_EQ(classifier->fields().find("architectures")->items[0].text,
            std::string(GetParam()->class_name) + "ForSequenceClassification");
  EXPECT_EQ((*make_model(*classifier))->num_labels(), 2);
}

TEST_P(EncoderTest, IsNoCausalLanguageModel) {
  const io::ConfigJson config = changed(GetParam()->sample, R"({"architectures": null})");
  EXPECT_TRUE(is_encoder(config));
  const auto model = make_language_model(config);
  const Status causal = check_is_causal(**model, config);
  ASSERT_FALSE(causal);
  EXPECT_THAT(causal.error().message(), HasSubstr(std::string(GetParam()->model_type) + " is an encoder"));
  EXPECT_THAT(causal.error().hint, HasSubstr("sequence_classification"));
}

INSTANTIATE_TEST_SUITE_P(Each, EncoderTest, testing::ValuesIn([] {
                           std::vector<const Family*> list;
                           list.reserve(kEncoderFamilies.size());
                           for (const auto family : kEncoderFamilies) list.push_back(&family());
                           return list;
                         }()),
                         [](const auto& test) {
                           std::string name(test.param->model_type);
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace plimsoll::models
