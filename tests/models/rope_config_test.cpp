// Rotary settings: both spellings, what each type reads, frequencies and factors as transformers has them.
#include "models/rope_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "changed_config.h"

namespace plimsoll::models {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<ParsedRope> rope_of(const std::string& fields, int64_t max_positions = 512) {
  return parse_rope(changed("{}", fields), max_positions);
}

TEST(RopeConfig, HasTransformersFrequencies) {
  // Recorded: ROPE_INIT_FUNCTIONS of transformers 5.23, head_dim 20.
  struct Row {
    RopeConfig rope;
    std::vector<float> expected;
  };
  const Row rows[] = {
      {{},
       {1.0F, 0.3981071710586548F, 0.15848931670188904F, 0.06309572607278824F, 0.025118863210082054F,
        0.009999999776482582F, 0.003981070592999458F, 0.001584893325343728F, 0.0006309573072940111F,
        0.0002511886996217072F}},
      {{.kind = RopeConfig::Kind::kLinear, .factor = 4.0},
       {0.25F, 0.0995267927646637F, 0.03962232917547226F, 0.01577393151819706F, 0.0062797158025205135F,
        0.0024999999441206455F, 0.0009952676482498646F, 0.000396223331335932F, 0.00015773932682350278F,
        6.27971749054268e-05F}},
      {{.kind = RopeConfig::Kind::kLlama3, .theta = 500000.0, .factor = 8.0},
       {1.0F, 0.269217312335968F, 0.07247795909643173F, 0.019512321799993515F, 0.005253055598586798F,
        0.0005248460220173001F, 4.759133298648521e-05F, 1.2812417480745353e-05F, 3.449323685345007e-06F,
        9.28618078432919e-07F}},
      {{.kind = RopeConfig::Kind::kYarn,
        .factor = 4.0,
        .original_max_position_embeddings = 128,
        .attention_factor = 1.138629436111989},
       {1.0F, 0.3234620690345764F, 0.09905582666397095F, 0.02760438062250614F, 0.0062797158025205135F,
        0.0024999999441206455F, 0.0009952676482498646F, 0.000396223331335932F, 0.00015773932682350278F,
        6.27971749054268e-05F}},
      {{.kind = RopeConfig::Kind::kYarn,
        .theta = 500000.0,
        .factor = 8.0,
        .original_max_position_embeddings = 4096,
        .beta_fast = 16,
        .beta_slow = 2,
        .truncate = false},
       {1.0F, 0.269217312335968F, 0.07247795909643173F, 0.017628759145736694F, 0.0018453842494636774F,
        0.00017677668074611574F, 4.759133298648521e-05F, 1.2812417480745353e-05F, 3.449323685345007e-06F,
        9.28618078432919e-07F}},
      {{.kind = RopeConfig::Kind::kYarn, .factor = 40.0, .original_max_position_embeddings = 4096},
       {1.0F, 0.3981071710586548F, 0.15848931670188904F, 0.06309572607278824F, 0.020220685750246048F,
        0.006099999882280827F, 0.0016521442448720336F, 0.00034867649083025753F, 1.5773932318552397e-05F,
        6.27971758149215e-06F}},
      {{.kind = RopeConfig::Kind::kDynamic, .factor = 3.3, .original_max_position_embeddings = 512},
       {1.0F, 0.3981071710586548F, 0.15848931670188904F, 0.06309572607278824F, 0.025118863210082054F,
        0.009999999776482582F, 0.003981070592999458F, 0.001584893325343728F, 0.0006309573072940111F,
        0.0002511886996217072F}},
  };
  for (const Row& row : rows) {
    const std::vector<float> frequencies = row.rope.inverse_frequencies(20);
    ASSERT_EQ(frequencies.size(), row.expected.size());
    // The one in the middle of a ramp cancels; the others agree to the last bit or two.
    for (size_t i = 0; i < frequencies.size(); ++i)
      EXPECT_NEAR(frequencies[i], row.expected[i], row.expected[i] * 1e-6F) << i;
  }
}

TEST(RopeConfig, ReadsYarnAndItsFactor) {
  struct Row {
    const char* settings;
    double attention_factor;
  };
  // Recorded from the same functions.
  const Row rows[] = {
      {R"("factor": 4.0, "original_max_position_embeddings": 128)", 1.138629436111989},
      {R"("factor": 4.0, "attention_factor": 0.75)", 0.75},
      {R"("factor": 40.0, "mscale": 0.707, "mscale_all_dim": 1.2)", 0.8739404576185121},
      {R"("factor": 40.0, "mscale": 0.707)", 1.3688879454113936},  // one of the two alone is passed over
      {R"("factor": 1.0)", 1.0},
      {R"("factor": null, "original_max_position_embeddings": 256)",
       1.0693147180559945},  // the factor is 512 / 256
  };
  for (const Row& row : rows) {
    const auto r = rope_of(std::string(R"({"rope_scaling": {"rope_type": "yarn", )") + row.settings + "}}");
    ASSERT_TRUE(r) << r.error().message();
    EXPECT_EQ(r->rope.kind, RopeConfig::Kind::kYarn);
    EXPECT_NEAR(r->rope.attention_factor, row.attention_factor, 1e-15) << row.settings;
  }
}

TEST(RopeConfig, TakesTheOriginalPositionsFromWhereTransformersDoes) {
  const auto original = [](const std::string& fields) {
    const auto r = rope_of(fields);
    EXPECT_TRUE(r) << fields;
    return r ? r->rope.original_max_position_embeddings : 0;
  };
  EXPECT_EQ(original(R"({"rope_parameters": {"rope_type": "yarn", "factor": 2}})"), 512);
  EXPECT_EQ(original(R"({"rope_parameters": {"rope_type": "yarn", "factor": 2,
                         "original_max_position_embeddings": 64}})"),
            64);
  EXPECT_EQ(original(R"({"original_max_position_embeddings": 32, "rope_parameters": {"rope_type": "yarn",
                         "factor": 2, "original_max_position_embeddings": 64}})"),
            32);
  EXPECT_EQ(original(R"({"rope_scaling": {"type": "dynamic", "factor": 2}})"), 512);
}

TEST(RopeConfig, NamesWhatItPassedOver) {
  const auto r = rope_of(R"({"rope_scaling": {"rope_type": "default", "factor": 2, "my_field": 1}})");
  ASSERT_TRUE(r);
  EXPECT_THAT(r->unknown_fields, ElementsAre("rope_scaling.factor", "rope_scaling.my_field"));
}

TEST(RopeConfig, RefusesOtherTypesByName) {
  for (const char* type : {"longrope", "proportional", "axial", "mrope", "su", "ntk"}) {
    const auto r =
        rope_of(std::string(R"({"rope_scaling": {"rope_type": ")") + type + R"(", "factor": 4.0}})");
    ASSERT_FALSE(r) << type;
    EXPECT_THAT(r.error().what, HasSubstr("rope_type is \"" + std::string(type) + "\""));
  }
  EXPECT_FALSE(rope_of(R"({"rope_scaling": {"rope_type": "yarn", "factor": 0.5}})"));
  EXPECT_FALSE(rope_of(R"({"rope_scaling": {"rope_type": "yarn", "original_max_position_embeddings": 64}})"));
  EXPECT_FALSE(rope_of(R"({"rope_theta": 1, "rope_scaling": {"rope_type": "yarn", "factor": 2}})"));
  EXPECT_FALSE(rope_of(R"({"rope_scaling": {"rope_type": "default", "mrope_section": [1, 2, 3]}})"));
}

}  // namespace
}  // namespace plimsoll::models
